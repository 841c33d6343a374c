package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"time"
)

// What a console keeps of the people who use it: see AccountStore.

// ErrLastAdmin: the change would leave no enabled admin.
var ErrLastAdmin = errors.New("xxljob: the last admin cannot be removed, disabled or demoted")

// ErrUserExists: the name is taken, or there is a user already and this was to be the first.
var ErrUserExists = errors.New("xxljob: the user exists")

// ErrTooManyTokens: the user has as many tokens as there may be.
var ErrTooManyTokens = errors.New("xxljob: the user has too many tokens")

// The bounds of what a console keeps of a user.
const (
	MostUserName = 64       // bytes
	MostSettings = 64 << 10 // bytes
	MostSessions = 50       // of a user; a further one ends the one that was used least lately
	MostTokens   = 50       // of a user
	MostApps     = 1_000    // apps that a user or a token has rights for by name
	MostHash     = 512      // bytes of a User.Password
	HashBytes    = 32       // of what secrets are known by
	MostAgent    = 255      // bytes of a Session.Agent; what is longer is cut
	LoginBuckets = 1 << 16  // see LoginBucket
	MostCodes    = 100      // codes for the first user that are kept at once
	FreeTries    = 5        // failed logins by one name after which further ones wait
	LongestWait  = 30 * time.Second
	TriesKept    = time.Hour // after the last of them
	TokenNote    = time.Hour // how old a Token.Used may be before it is written anew
)

// Grants are rights: what a user or a token may do.
type Grants struct {
	// Admin has all rights there are.
	Admin bool
	// Apps has the name of a role for each app; "*" stands for all apps that are not named.
	Apps map[string]string
	// Scripts is the right to see and change the source of scripts, in apps where the role
	// allows changes.
	Scripts bool
}

// Clone returns a copy that shares nothing.
func (g Grants) Clone() Grants {
	g.Apps = maps.Clone(g.Apps)
	return g
}

// User is an account of a console.
type User struct {
	// Name is how the user logs in, in lower case. It never changes.
	Name string
	// Title is what others see, empty for Name.
	Title string
	Grants
	// Password is a hash, in words of the console's; empty for a user who cannot log in by one.
	// The record of changes never has it.
	Password string
	// Disabled users cannot log in, and what they had open is ended.
	Disabled bool
	// Settings is a JSON object of what the user has chosen; empty for nothing.
	Settings string
	// Version grows with each change but those of Settings.
	Version int64
	// Added and PasswordSet are by the store's clock.
	Added, PasswordSet time.Time
}

// Session is a login that has not ended.
type Session struct {
	// ID is given by the store, and no secret.
	ID   int64
	User string
	// Hash is that of the secret which the browser has: 32 bytes.
	Hash string
	// Client is the address that it came from, Agent what the browser says it is.
	Client, Agent string
	// Began, Seen and Proved are by the store's clock: when it began, was used last, as far as
	// that was noted, and the user has given the password last.
	Began, Seen, Proved time.Time
}

// SessionLimits say when a session has ended.
type SessionLimits struct {
	// Idle is how long it may be unused, Most how long it may be at all. Both are positive.
	Idle, Most time.Duration
	// Note is how old Seen may be before it is written anew.
	Note time.Duration
	// Doubted says that the store's clock is not trusted at this moment (TroubleClock). A session that
	// has ended by that clock is not found, and is again when the clock is right: nothing is deleted
	// for its age, and no time is corrected. Without it, times of a session that are more than
	// ClockAhead after the store's clock are of a clock that was ahead: they become the present one
	// when the session is used, or another one begins.
	Doubted bool
}

// ClockAhead is how far ahead of a store's clock a time may be that it has given itself, as processes
// and statements beside each other see it. One that is further ahead is of a clock that was wrong.
const ClockAhead = time.Minute

// Check returns what is wrong with the limits.
func (l SessionLimits) Check() error {
	if l.Idle <= 0 || l.Most <= 0 || l.Note < 0 {
		return fmt.Errorf("xxljob: limits of sessions: idle %v, most %v, note %v: want more than nothing", l.Idle, l.Most, l.Note)
	}
	return nil
}

// Over reports whether a session has ended at the given time. A clock that was set back ends
// none.
func (l SessionLimits) Over(s *Session, now time.Time) bool {
	return now.Sub(s.Seen) > l.Idle || now.Sub(s.Began) > l.Most
}

// Token is a secret that a program shows instead of a session.
type Token struct {
	// ID is given by the store, and no secret.
	ID int64
	// User is whose it is, Name what it is called. It can do no more than its user.
	User, Name string
	Grants
	// Hash is that of its secret: 32 bytes.
	Hash string
	// Added, Expires and Used are by the store's clock; Used is zero where it was never used,
	// and may be an hour old.
	Added, Expires, Used time.Time
}

// LoginWait is how long a try to log in by a name is refused after the last of so many that
// have failed: nothing for fewer than FreeTries, then 1, 2, 4 seconds and so on up to
// LongestWait.
func LoginWait(failed int) time.Duration {
	if failed < FreeTries {
		return 0
	}
	return min(time.Second<<min(failed-FreeTries, 10), LongestWait)
}

// LoginBucket is where failed logins by a name are counted, from 0 to LoginBuckets-1. Names that
// share one wait for each other: so what is kept is bounded, whatever names are tried.
func LoginBucket(name string) int {
	sum := sha256.Sum256([]byte(name))
	return int(binary.BigEndian.Uint16(sum[:]))
}

// CheckHash returns what is wrong with the hash of a secret.
func CheckHash(hash string) error {
	if len(hash) != HashBytes {
		return fmt.Errorf("xxljob: a hash of %d bytes, want %d", len(hash), HashBytes)
	}
	return nil
}

// CheckCode returns what is wrong with a code for the first user that is to count for so long: a
// millisecond to 30 days.
func CheckCode(hash string, valid time.Duration) error {
	if valid < time.Millisecond || valid > 30*24*time.Hour {
		return fmt.Errorf("xxljob: a code that counts for %v, want a millisecond to 30 days", valid)
	}
	return CheckHash(hash)
}
