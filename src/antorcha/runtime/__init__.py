"""The runtime: allocator, thread pool, storage, launcher, random generators and the call path."""
