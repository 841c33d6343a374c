package xxljob

// What nodes leave for each other in the store: runs to take and to kill, and questions for
// lines of logs.

import "github.com/xxljob/xxljob/store"
import "context"

// Inbox is what waits for a node.
type Inbox struct {
	Runs  []Run
	Kills []Run
	Asks  []Ask
}

// LogStore carries questions for lines of runs' logs to the nodes that have them,
// and the answers back. A question is dropped a minute after it was asked, answered
// or not: it is in no Inbox from then on, and unknown to the methods here.
type LogStore interface {
	// AskLog puts a question to an incarnation, which finds it in its Inbox, and
	// returns it with a new ID. Whether the incarnation is there is not looked at.
	// ErrNotFound when there is no such run.
	AskLog(ctx context.Context, ask Ask) (Ask, error)
	// AnswerLog answers a question, by a compare-and-set: of several answers the
	// first stays. A question that is not there is no error.
	AnswerLog(ctx context.Context, id int64, answer store.Answer) error
	// LogAnswer returns the answer to a question; answered is false while there is
	// none. ErrNotFound when there is no such question.
	LogAnswer(ctx context.Context, id int64) (answer store.Answer, answered bool, err error)
}

// Ask is a question for lines of a run's log.
type Ask struct {
	// ID is given by the store: positive, and greater than those of earlier
	// questions.
	ID int64
	// Incarnation is the node that is asked.
	Incarnation string
	// Run is the run as it now is. AskLog goes by its ID only, and a question whose
	// run is gone is in no Inbox.
	Run Run
	// FromLine is the first line wanted, from 1, 32 bits wide.
	FromLine int
}
