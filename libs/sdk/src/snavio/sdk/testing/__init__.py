"""An in-memory Snavio for tenants' own tests (`snavio-sdk[testing]`): `snavio.sdk.testing.snavio.InMemorySnavio`."""
