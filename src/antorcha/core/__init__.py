"""What every floor stands on: dtypes, shapes, devices, modes, and how modules are deferred."""
