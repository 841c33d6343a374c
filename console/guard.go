package console

// The guard: what each request goes through before a page answers it. It finds the route, says who asks,
// reads the form and what is asked about, and has permission.go decide.

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// serve finds the route, checks whether it may be asked, and asks it.
func (q *request) serve() error {
	rt, values, known := match(q.table, q.R.Method, q.Path)
	switch {
	case rt == nil && known:
		return errBadMethod
	case rt == nil, rt.only && q.accounts == nil:
		return errNotThere
	}
	q.route, q.values = rt, values
	ctx, cancel := context.WithTimeout(q.R.Context(), rt.timeout())
	defer cancel()
	q.ctx = store.WithClient(ctx, q.Client.Text, q.ID)
	q.R = q.R.WithContext(q.ctx)
	if err := q.origins.Check(q.R); err != nil {
		return errForeign
	}
	err := q.admit(rt) // before the body is read: users have room of their own for theirs
	if rt.changes() && (err == nil || rt.keeps && q.isKept(asProblem(err))) {
		if fault := q.readForm(rt); fault != nil {
			return fault
		}
	}
	if err != nil {
		return err
	}
	err = q.serveRoute(rt)
	if err == nil && rt.changes() && !rt.reads && !rt.own && q.user != nil {
		q.counted.changed()
	}
	if err == nil && rt.needs > anybody && rt.pattern != "troubles" { // which asks the scheduler alone
		q.answered.Store(time.Now().UnixMilli())
	}
	return err
}

// readForm reads the form of a request that changes something.
func (q *request) readForm(rt *route) error {
	of := web.FormBounds{Bytes: mostBody, Fields: rt.fields(), Who: q.asker().Holder()}
	switch {
	case rt.takesKept():
		of.Bytes += mostBeside
		if rt.carries { // the login's own form has it in front of all that is long
			of.Needs = keptFor
		}
	case q.user == nil:
		of.Bytes = web.MostOpen
	}
	size, err := q.ReadForm(q.bodies, of)
	if err == nil && rt.keeps && size > mostBody && q.Field("show") != showResumed {
		return web.ErrTooLarge // or the login could not keep it
	}
	return err
}

// admit says who asks, reads what is asked about, and decides whether it may be.
func (q *request) admit(rt *route) error {
	if rt.needs == open {
		return q.limitRate(rt.rate)
	}
	if err := q.identify(); err != nil {
		return err
	}
	switch {
	case rt.needs == anybody:
		return nil
	case rt.needs == newcomer:
		return q.wantsNewcomer()
	case q.user == nil:
		if err := q.wantsUsers(); err != nil {
			return err
		}
		return errNobody
	}
	if q.mustChangeIt() && !(rt.own && rt.needs == somebody) && rt.pattern != "account" {
		return errMustChange
	}
	return q.permit(rt)
}

// identify sets the user of the request, if it has one.
func (q *request) identify() error {
	u, err := q.who()
	var wait *web.Problem
	switch {
	case errors.As(err, &wait):
		return wait
	case errors.Is(err, ErrNoUser), errors.Is(err, xxljob.ErrNotFound):
		if _, is := q.Bearer(); is && q.accounts != nil {
			q.logins.Refuse(q.ctx, q.Exchange)
		}
		return nil
	case err != nil:
		if q.accounts != nil {
			return err // of the store
		}
		return &web.Problem{Status: http.StatusServiceUnavailable, Key: "problem.auth", Cause: err, After: 5 * time.Second}
	}
	q.user = &u
	q.ctx = xxljob.WithActor(q.ctx, u.actor())
	q.R = q.R.WithContext(q.ctx)
	if u.account != nil {
		q.looks.OfSettings(&q.look, u.account.Settings)
	}
	return nil
}

// who asks the host who it is, or the console's own accounts.
func (q *request) who() (User, error) {
	if q.accounts == nil {
		return q.Auth.called(q.ctx, q.R)
	}
	id, was, err := q.logins.Who(q.ctx, q.Exchange)
	if was != nil {
		u := ofIdentity(was)
		q.was = &u
	}
	if err != nil {
		return User{}, err
	}
	return ofIdentity(id), nil
}

// permit reads what is asked about, and decides whether the user may ask.
// A place is taken before, since what is read may be large.
func (q *request) permit(rt *route) error {
	places := q.underWay
	if rt.long {
		places = q.lengthy
	}
	if err := q.hold(places); err != nil {
		return err
	}
	app := ""
	if rt.of != nothing {
		var err error
		if app, err = q.readObject(rt.of); err != nil {
			return err
		}
	}
	if p := rt.refused(q.user, app, q.ReadOnly); p != nil {
		return p
	}
	return q.limitRate(rt.rate)
}

// readObject reads the job or the run of the path, and returns its app.
func (q *request) readObject(of object) (app string, err error) {
	id, err := strconv.ParseInt(q.values["id"], 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != q.values["id"] {
		return "", errNotThere
	}
	if of == aJob {
		q.job, err = q.Store.Job(q.ctx, id)
		q.look.InZoneOf(q.job.Schedule.Zone)
		return q.job.App, err
	}
	if q.run, err = q.Store.Run(q.ctx, id); err == nil {
		one := []xxljob.Run{q.run}
		q.markSecret(q.ctx, one)
		q.run = one[0]
	}
	return q.run.App, err
}
