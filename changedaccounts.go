package xxljob

// What an entry of the record of changes says of users and tokens. It never says anything of a
// hash.

import (
	"context"
	"strconv"
	"time"

	"github.com/xxljob/xxljob/store"
)

// recordedUser is what the record says of a user.
type recordedUser struct {
	Title       string
	Admin       bool
	Apps        map[string]string
	Scripts     bool
	Disabled    bool
	PasswordSet time.Time
}

func recordOfUser(u *store.User) recordedUser {
	if u == nil {
		return recordedUser{}
	}
	r := recordedUser{Title: u.Title, Admin: u.Admin, Scripts: u.Scripts, Disabled: u.Disabled, PasswordSet: u.PasswordSet}
	if len(u.Apps) > 0 {
		r.Apps = u.Apps
	}
	return r
}

// OfUser, for authors of stores, fills in what the entry says of a change of a user, of which
// before is nil where it was added, and after where it was removed: all but ID and At. It
// reports whether anything has changed that the record tells of.
func (c *Change) OfUser(ctx context.Context, before, after *store.User) bool {
	c.from(ctx)
	c.Object, c.Verb = store.ObjectUser, "update"
	switch {
	case before == nil:
		c.Verb, c.ObjectID = "add", after.Name
	case after == nil:
		c.Verb, c.ObjectID = "remove", before.Name
	default:
		c.ObjectID = after.Name
	}
	c.between(before != nil, recordOfUser(before), after != nil, recordOfUser(after))
	return c.Verb != "update" || c.After != "{}"
}

// OfToken, for authors of stores, is OfUser for a token, which is added or removed.
func (c *Change) OfToken(ctx context.Context, before, after *store.Token) {
	type recorded struct {
		User, Name string
		Admin      bool
		Apps       map[string]string
		Scripts    bool
		Expires    time.Time
	}
	of := func(t *store.Token) (r recorded) {
		if t != nil {
			r = recorded{User: t.User, Name: t.Name, Admin: t.Admin, Scripts: t.Scripts, Expires: t.Expires}
			if len(t.Apps) > 0 {
				r.Apps = t.Apps
			}
		}
		return r
	}
	c.from(ctx)
	c.Object, c.Verb = store.ObjectToken, "add"
	t := after
	if after == nil {
		c.Verb, t = "remove", before
	}
	c.ObjectID = strconv.FormatInt(t.ID, 10)
	c.between(before != nil, of(before), after != nil, of(after))
}
