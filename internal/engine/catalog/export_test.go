package catalog

// Cycles are the ways round in a graph.
func Cycles(next map[string][]string) func(node string) string { return newCycles(next).through }
