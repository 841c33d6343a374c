package store

// MostLogPages is how many pages one call of LogStore.AddLogPages brings at most.
const MostLogPages = 1000

// LogPage is some lines of a run's log that follow each other.
type LogPage struct {
	RunID int64
	// FirstLine and LastLine are the numbers of its lines, from 1, 32 bits wide.
	FirstLine, LastLine int
	// Size is how many bytes its lines have, 32 bits wide; Content are the lines, compressed.
	Size    int
	Content []byte
	// Notice says that the page is stored whatever the job has, for it says that the log is cut.
	// It is not kept.
	Notice bool
}
