package block

import "strings"

// The texts that tell of a strategy at work, exactly as on XXL-JOB's wire. The
// colon is the full-width one, U+FF1A, and no blank follows it.
const (
	// MsgDiscard is the message of the answer that refuses a trigger.
	MsgDiscard = "block strategy effect：Discard Later"

	// MsgCover is the reason a covered run was stopped for. In the result of
	// the run a note in brackets follows it, on whether it was executing or
	// waiting. By itself it is the message of an answer that refuses a trigger
	// which comes behind a later one.
	MsgCover = "block strategy effect：Cover Early"
)

// IsDiscard reports whether msg, of an answer that refuses a trigger, says that
// it was discarded by its block strategy. Nothing else in the answer does. The
// whole message must be MsgDiscard, save for blanks around it: a text that
// quotes it is another failure's.
func IsDiscard(msg string) bool { return strings.TrimSpace(msg) == MsgDiscard }

// IsCover reports whether msg, of an answer that refuses a trigger, says that a later run of the
// job has taken its place before it came. As with IsDiscard, the whole message has to say so.
func IsCover(msg string) bool { return strings.TrimSpace(msg) == MsgCover }
