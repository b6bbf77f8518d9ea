"""A server of indexes for agents, by the Model Context Protocol."""
