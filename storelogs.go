package xxljob

// What nodes leave for each other in the store: runs to take and to kill, and questions for
// lines of logs.

// Inbox, for authors of stores, is what waits for a node.
type Inbox struct {
	Runs  []Run
	Kills []Run
	Asks  []Ask
}

// Ask, for authors of stores, is a question for lines of a run's log.
type Ask struct {
	// ID is given by the store: positive, and greater than those of earlier
	// questions.
	ID int64
	// Incarnation is the node that is asked.
	Incarnation string
	// Run is the run as it now is. AskLog goes by its ID only, and a question whose
	// run is gone is in no Inbox.
	Run Run
	// FromLine is the first line wanted, from 1, 32 bits wide; a negative one wants so many of
	// the last lines.
	FromLine int
}
