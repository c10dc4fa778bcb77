"""The processes that run submissions and references: fork server, supervisor, worker."""
