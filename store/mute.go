package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// ObjectMute is the kind of an entry of the record about a mute, whose Key is its ObjectID.
const ObjectMute = "mute"

// MostMuted is how long a mute lasts at most, and MostMuteNote how many bytes its note has at most.
const (
	MostMuted    = 7 * 24 * time.Hour
	MostMuteNote = 255
)

// Mute says that somebody knows of what is wrong with a job, or of a cause: its alarms are noted and
// not sent meanwhile, and pages fold it away.
type Mute struct {
	// Key is what is muted: MuteOfJob of a job, or the Key of a finding (package finding), which
	// is a cause. It has 1 to 255 bytes without control characters.
	Key string
	// App is the app that it is about, empty for a cause of the whole cluster, and JobID the job,
	// zero for a cause.
	App   string
	JobID int64
	// At is since when, by the store's clock, and By who has muted it. A store sets both; By is
	// the actor of the context.
	At time.Time
	By string
	// Until is when it ends by itself: at most MostMuted from now, to the millisecond.
	Until time.Time
	// Note is why, of at most MostMuteNote bytes.
	Note string
}

// MuteOfJob is the key under which a job is muted.
func MuteOfJob(id int64) string { return "job/" + strconv.FormatInt(id, 10) }

// Validate returns what is wrong with a mute that begins now: a FieldError each, joined.
func (m *Mute) Validate(now time.Time) error {
	f := Faults{Of: "mute"}
	f.Text("Key", m.Key, 1, 255)
	f.Text("App", m.App, 0, 64)
	f.Text("Note", m.Note, 0, MostMuteNote)
	if job := strings.HasPrefix(m.Key, "job/"); m.JobID < 0 || m.JobID >= 1<<31 || job != (m.JobID > 0) || job && m.Key != MuteOfJob(m.JobID) {
		f.Add("JobID", m.JobID, errors.New("want the job of a Key of MuteOfJob, and none for a cause"))
	}
	switch d := m.Until.Sub(now); {
	case d <= 0:
		f.Add("Until", m.Until, errors.New("want a time to come"))
	case d > MostMuted:
		f.Add("Until", m.Until, errors.New("want at most seven days from now"))
	}
	return f.Err()
}

// trustedKey is the key of what WithTrustedTime has in a context.
type trustedKey struct{}

// WithTrustedTime returns a context for a MuteKeeper by whose clock no mute is to end at this moment: the clock
// is not trusted (TroubleClock), and at is how late it was at least when it was last. By such a clock a
// mute would be over, and forgotten, before its time.
func WithTrustedTime(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, trustedKey{}, at)
}

// TrustedTime, for authors of stores, is what WithTrustedTime was given; the zero time where it was not called.
func TrustedTime(ctx context.Context) time.Time {
	at, _ := ctx.Value(trustedKey{}).(time.Time)
	return at
}

// ClockTrusted is how late it is by the store's clock as that was trusted last, of what is seen of it while it is
// ahead (TroubleClock), or was and is still by a part of that. It reports false where it is not, so that it ends
// nothing before its time.
func ClockTrusted(seen Seen) (at time.Time, ahead bool) {
	switch seen.What {
	case SeenClockAhead, SeenClockJumped, SeenClockBack:
		return seen.At, !seen.At.IsZero()
	}
	return time.Time{}, false
}

// MuteKeeper is what a Store is as well that keeps mutes. Both stores of this module are. Each
// change of a mute is recorded.
type MuteKeeper interface {
	// PutMute keeps a mute in place of one with the same Key, and returns it as stored: Until is
	// kept to the millisecond, and of a job App is the job's. Errors are those of Mute.Validate,
	// and ErrNotFound for a job that is not there. Mutes that are over are forgotten. For all methods
	// a mute is over at its Until by the store's clock, or by WithTrustedTime where that is earlier.
	PutMute(ctx context.Context, m Mute) (Mute, error)
	// DropMute ends a mute. ErrNotFound where there is none, or it is over.
	DropMute(ctx context.Context, key string) error
	// Mutes returns the mutes that are not over, in order of Key by its bytes.
	Mutes(ctx context.Context) ([]Mute, error)
}

// OfMute, for authors of stores, fills in what the entry says of a change of a mute, of which before is
// nil where there was none, and after where it was ended: all but ID and At.
func (c *Change) OfMute(ctx context.Context, before, after *Mute) {
	c.from(ctx)
	type mute struct {
		Until time.Time
		Note  string
	}
	var was, is mute
	m := after
	if c.Verb = "mute"; after == nil {
		c.Verb, m = "unmute", before
	} else {
		is = mute{after.Until, after.Note}
	}
	if before != nil {
		was = mute{before.Until, before.Note}
	}
	c.Object, c.ObjectID, c.App, c.JobID = ObjectMute, m.Key, m.App, m.JobID
	c.between(before != nil, was, after != nil, is)
}
