package store

// Answer is what a node says to an Ask: lines, or why it has none.
type Answer struct {
	// ToLine is the number of the last line, 32 bits wide; IsEnd says that none
	// will follow.
	ToLine int
	IsEnd  bool
	// Content holds the lines, as UTF-8 without NUL. The node that answers keeps
	// it to 1 MiB.
	Content string
	// Refusal, when not empty, says why there are no lines.
	Refusal string
}
