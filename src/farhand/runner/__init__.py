"""The only code that performs effects: it commits an event, tells the watchers, then does what the run asks for."""
