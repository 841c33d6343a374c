package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/xxljob/xxljob/internal/errs"
)

// What a console keeps of its users. A store need not keep it: whoever asks looks whether it
// does.

// AccountStore is what a Store is as well that keeps the users of a console, their sessions and
// their tokens. Both stores of this module are. What rights mean, and how a password is hashed,
// is the console's to know; the store compares, counts and keeps time by its own clock, so that
// several processes that share it agree. Each change of a user or a token has its entry in the
// record of changes (see ChangeRecord), in the same transaction, without hashes; sessions,
// tries to log in, settings and hashes that are made anew have none.
//
// ErrNotFound is returned where what a method is about is not there.
type AccountStore interface {
	// AddUser inserts a user, with Version 1, and returns it as stored. ErrUserExists
	// where the name is taken. Errors besides are those of ValidateUser.
	AddUser(ctx context.Context, u User) (User, error)
	// AddFirstUser inserts an admin where there is no user yet, and where code is the hash of
	// one that AddSetupCode has stored and that still counts; of several calls at once one
	// does. From then on no code counts. ErrUserExists where there is a user,
	// ErrNotFound where the code does not count; nothing has changed then.
	AddFirstUser(ctx context.Context, u User, code string) (User, error)
	// AddSetupCode stores the hash of a code for AddFirstUser, which counts for so long. The
	// oldest are forgotten beyond MostCodes. ErrUserExists where there is a user.
	AddSetupCode(ctx context.Context, hash string, valid time.Duration) error
	// UpdateUser replaces all of a user but Settings, Added and PasswordSet, where u.Version is
	// the stored one, and returns it as stored. PasswordSet becomes now where Password differs;
	// then, and where the user is now disabled, all sessions of the user end. ErrConflict for
	// another version, ErrLastAdmin where no enabled admin would be left. Errors besides
	// are those of ValidateUser; after an error nothing has changed.
	UpdateUser(ctx context.Context, u User) (User, error)
	// RehashPassword puts another hash of the same password in the place of old, the one that a
	// user has. Nothing else of the user changes, Version and PasswordSet included; sessions go
	// on, and the record of changes has no entry, since nobody has done anything. ErrConflict
	// where the user has another hash by now: so it never undoes a change of the password. (A
	// user that was read before has the former hash, which is another password to UpdateUser.)
	// Errors besides are those of ValidateUser; after an error nothing has changed.
	RehashPassword(ctx context.Context, name, old, hash string) error
	// RemoveUser deletes a user with that version, with all sessions and tokens. Errors are
	// those of UpdateUser.
	RemoveUser(ctx context.Context, name string, version int64) error
	// SaveSettings replaces the settings of a user: a JSON object of at most
	// MostSettings bytes, or nothing. Errors are those of ValidateUser.
	SaveSettings(ctx context.Context, name, settings string) error
	// User returns a user.
	User(ctx context.Context, name string) (User, error)
	// Users returns users in order of Name, with names behind after, at most limit.
	Users(ctx context.Context, after string, limit int) ([]User, error)

	// AddSession begins a session of a user who is not disabled: s.User, Hash, Client and Agent
	// are given, and all else is the store's to fill in. It knows nothing of a password that was
	// checked before, and so who has done that looks at the user once more afterwards. Where the
	// user then has more than MostSessions, the ones seen least lately end, so that there
	// are never more, also after several calls at once. It forgets sessions that have ended by
	// the limits. ErrConflict where there is a session with this Hash.
	AddSession(ctx context.Context, s Session, limits SessionLimits) (Session, error)
	// Session returns a session by the hash of its secret, with its user, and notes that it was
	// seen, unless that is known for less than limits.Note. ErrNotFound where it has ended, be
	// it by the limits, or where its user is disabled.
	Session(ctx context.Context, hash string, limits SessionLimits) (Session, User, error)
	// ProveSession notes that the user of the session has just given the password.
	ProveSession(ctx context.Context, hash string) error
	// EndSession ends a session of the user.
	EndSession(ctx context.Context, user string, id int64) error
	// Sessions returns the sessions of a user that have not ended by the limits, the one seen
	// last first.
	Sessions(ctx context.Context, user string, limits SessionLimits) ([]Session, error)

	// AddToken inserts a token of a user: t.User, Name, Grants, Hash and Expires are given. A
	// user has at most MostTokens, those that have expired included: beyond that it is
	// ErrTooManyTokens. Errors besides are those of ValidateToken.
	AddToken(ctx context.Context, t Token) (Token, error)
	// Token returns a token that has not expired, by its ID and the hash of its secret, with its
	// user, and notes that it was used, unless that is known for less than an hour. ErrNotFound
	// where the hash is another one, and where the user is disabled; nothing is noted then.
	Token(ctx context.Context, id int64, hash string) (Token, User, error)
	// RemoveToken deletes a token of the user.
	RemoveToken(ctx context.Context, user string, id int64) error
	// Tokens returns the tokens of a user, expired ones too, in order of ID.
	Tokens(ctx context.Context, user string) ([]Token, error)

	// TryLogin says how long a try to log in by the name, or by whatever else tries are counted by,
	// has to wait; where it is zero, the try
	// counts as one that has failed, at once, so that of many at the same time no more are
	// let through than one after the other. See LoginWait, and for what it is counted
	// by, LoginBucket. Tries are forgotten an hour after the last.
	TryLogin(ctx context.Context, name string) (wait time.Duration, err error)
	// PassLogin forgets the tries by the name: one has succeeded.
	PassLogin(ctx context.Context, name string) error
}

// ValidateUser returns what is wrong with a user: a FieldError each, joined. Name is required,
// of at most 64 bytes in lower case, printable and without blanks; Title has at most 255 bytes.
// Settings are a JSON object of at most MostSettings bytes, or nothing.
func ValidateUser(u *User) error {
	f := Faults{Of: "user " + fmt.Sprintf("%q", errs.Shorten(u.Name, 40))}
	f.userName("Name", u.Name)
	f.Text("Title", u.Title, 0, 255)
	f.Text("Password", u.Password, 0, MostHash)
	for i := range f.Errs { // it is nobody's business, not even in part
		if e := f.Errs[i].(*FieldError); e.Field == "Password" {
			e.Value = ""
		}
	}
	f.settings(u.Settings)
	f.grants(u.Grants)
	return f.Err()
}

// ValidateToken returns what is wrong with a token that is to be added: a FieldError each,
// joined. Name is required, of at most 64 bytes, Hash has 32 bytes.
func ValidateToken(t *Token) error {
	f := Faults{Of: "token"}
	f.userName("User", t.User)
	f.Plain("Name", t.Name, 1, 64)
	f.Add("Hash", "", CheckHash(t.Hash))
	f.grants(t.Grants)
	if f.moment("Expires", t.Expires); t.Expires.IsZero() {
		f.Add("Expires", "", coded{"required", errors.New("must not be empty")})
	}
	return f.Err()
}

func (f *Faults) userName(field, name string) {
	known := len(f.Errs)
	f.Plain(field, name, 1, MostUserName)
	switch {
	case len(f.Errs) > known:
	case strings.ContainsFunc(name, unicode.IsSpace):
		f.Add(field, name, coded{"text", errors.New("must not have blanks")})
	case name == Scheduler:
		f.Add(field, name, errors.New("is how the record of changes calls what nobody has asked for"))
	case strings.ToLower(name) != name:
		f.Add(field, name, errors.New("want lower case"))
	}
}

func (f *Faults) settings(settings string) {
	var object map[string]json.RawMessage
	known := len(f.Errs)
	f.Text("Settings", settings, 0, MostSettings)
	if len(f.Errs) == known && settings != "" && (json.Unmarshal([]byte(settings), &object) != nil || object == nil) {
		f.Add("Settings", errs.Shorten(settings, 40), errors.New("want a JSON object"))
	}
}

func (f *Faults) grants(g Grants) {
	if n := len(g.Apps); n > MostApps {
		f.Add("Apps", n, coded{"too-long", fmt.Errorf("has %d entries, at most %d", n, MostApps)})
		return
	}
	for _, app := range slices.Sorted(maps.Keys(g.Apps)) {
		f.Text("Apps", app, 1, 64)
		f.Plain("Apps["+app+"]", g.Apps[app], 1, 32)
	}
}
