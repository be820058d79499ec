"""Behind ``autograd.profiler`` and ``profiler``: the one engine of both, and what is made of its
records: events (``build``), tables (``table``), traces for a browser (``chrome``)."""
