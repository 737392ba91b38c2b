// Replaced by the tool.
