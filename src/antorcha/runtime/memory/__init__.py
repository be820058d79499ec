"""Memory: the allocator, storages, how tensors lie in them, and what processes share."""
