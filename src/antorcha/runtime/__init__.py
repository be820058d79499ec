"""The runtime: allocator, thread pool, storage, launcher and random generators, and the call path."""
