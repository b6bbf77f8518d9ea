"""A server of an index for agents, by the Model Context Protocol."""
