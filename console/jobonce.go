package console

// Running a job once: with which parameter, where, which part of a broadcast, when, and under
// which key.

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// onceView is the form to run a job once.
type onceView struct {
	Job              xxljob.Job
	Param, Addresses string
	Hidden, Own      bool // the stored parameter is not shown; the one that was typed counts though it is empty
	Offered          []offered
	MoreOffered      bool // than are offered
	Broadcast        bool
	Part, Parts      string
	At, Zone, Key    string
	Faults           map[string]string
	Other            string
	Resumed          bool   // somebody has had to log in
	Nobody, Login    string // that this came from nobody, and where one logs in
}

// triggerPattern is where the form is sent.
const triggerPattern = "jobs/{id}/trigger"

// offered is an address that the app has.
type offered struct {
	Address, Node string
	Ticked        bool
}

// The bounds of a form that runs a job once. An address is good for as long as the scheduler's
// default says: one that has just died is found out by the run.
const (
	mostOffered    = 100
	mostChosen     = 1000
	addressGoodFor = 90 * time.Second
)

// newOnce is the form before anybody has typed anything, without addresses that are offered.
func (q *request) newOnce() *onceView {
	v := &onceView{Job: q.job, Hidden: q.hidesParam(&q.job), Broadcast: q.job.Route == xxljob.RouteShardingBroadcast, Zone: q.formZone().String(), Faults: map[string]string{}}
	if !v.Hidden {
		v.Param = q.job.Param
	}
	return v
}

// offeringOnce is the form with the addresses that the app has by now.
func (q *request) offeringOnce() (v *onceView, err error) {
	v = q.newOnce()
	v.Offered, err = q.liveAddresses(q.job.App)
	if len(v.Offered) > mostOffered {
		v.Offered, v.MoreOffered = v.Offered[:mostOffered], true
	}
	return v, err
}

// liveAddresses are those that the app has by now, as far as the store says.
func (q *request) liveAddresses(app string) (list []offered, err error) {
	group, err := q.Store.Group(q.ctx, app)
	switch {
	case err != nil && !errors.Is(err, xxljob.ErrNotFound):
		return nil, err
	case group.Manual:
		for _, a := range group.Addresses {
			list = append(list, offered{Address: a})
		}
	default:
		regs, err := q.Store.Addresses(q.ctx, app, addressGoodFor)
		if err != nil {
			return nil, err
		}
		for _, reg := range regs {
			list = append(list, offered{Address: reg.Address})
		}
	}
	if cluster, ok := q.Store.(xxljob.ClusterReader); ok {
		view, err := cluster.View(q.ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range view.Nodes {
			if !n.Left && !n.Away && !n.Resting && slices.ContainsFunc(n.Attached, func(a store.Attachment) bool { return a.App == app }) {
				list = append(list, offered{Address: store.LocalAddress(n.Incarnation), Node: n.ID})
			}
		}
	}
	return list, nil
}

// oncePage shows the form, or the part of it that offers addresses, to a dialog that has the rest.
func (q *request) oncePage() error {
	v, err := q.offeringOnce()
	if err != nil {
		return err
	}
	if q.IsPart() {
		return q.write(http.StatusOK, "offered", q.page("once", v))
	}
	return q.show("once", http.StatusOK, v)
}

func (q *request) triggerJob() error {
	v, err := q.offeringOnce()
	if err != nil {
		return err
	}
	t := q.readOnce(v)
	if q.Field("show") == showResumed { // it was sent before the login
		v.Resumed = true
		clear(v.Faults)
		return q.show("once", http.StatusOK, v)
	}
	if len(v.Faults) == 0 {
		ids, err := q.Scheduler.Trigger(q.ctx, q.grantsOf(), q.job.ID, t)
		if err == nil {
			return q.Redirect("runs/" + strconv.FormatInt(ids[0], 10))
		}
		list := xxljob.FieldErrors(err)
		if len(list) == 0 {
			return err
		}
		for _, e := range list {
			q.onceFault(v, e)
		}
	}
	return q.show("once", http.StatusUnprocessableEntity, v)
}

// onceOfNobody is the form as somebody has typed it who is not logged in, and so is told nothing of
// the job.
func (q *request) onceOfNobody() *onceView {
	v := &onceView{Broadcast: q.Field("part")+q.Field("parts") != "", Zone: q.formZone().String(), Faults: map[string]string{}, Nobody: q.text("form.nobody"), Login: q.Auth.login}
	v.Job.ID, _ = strconv.ParseInt(q.values["id"], 10, 64)
	v.Job.Name = q.values["id"]
	q.readOnce(v)
	clear(v.Faults)
	return v
}

// onceFault puts what is wrong with a trigger at its field.
func (q *request) onceFault(v *onceView, e *xxljob.FieldError) {
	name, known := map[string]string{"Param": "param", "Shard": "part", "At": "at", "Key": "key", "Addresses": "addresses"}[e.Field]
	words := q.faultText("fault.once.", name, e)
	if !known {
		v.Other = words
		return
	}
	v.Faults[name] = words
}

// readOnce is the trigger that the form asks for.
func (q *request) readOnce(v *onceView) (t xxljob.Trigger) {
	v.Param, v.Own, v.Addresses, v.Key = lineFeeds(q.Field("param")), q.Field("own") != "", q.Field("addresses"), strings.TrimSpace(q.Field("key"))
	v.Part, v.Parts, v.At = strings.TrimSpace(q.Field("part")), strings.TrimSpace(q.Field("parts")), strings.TrimSpace(q.Field("at"))
	switch {
	case !q.R.PostForm.Has("param") && !v.Own: // as it is defined
	case v.Hidden && v.Param == "" && !v.Own: // nobody has seen it
	case v.Param == lineFeeds(q.job.Param) && !v.Own && !v.Hidden: // as it is defined, also after a later edit
	default:
		t.Param = &v.Param
	}
	t.Key = v.Key
	for i := range v.Offered {
		o := &v.Offered[i]
		if o.Ticked = slices.Contains(q.R.PostForm["address"], o.Address); o.Ticked {
			t.Addresses = append(t.Addresses, o.Address)
		}
	}
	for _, address := range q.R.PostForm["address"] { // one that was offered before, and is not any more
		if !slices.Contains(t.Addresses, address) && !slices.Contains(separate(v.Addresses), address) {
			v.Addresses = strings.TrimSpace(v.Addresses + "\n" + address)
		}
	}
	for _, address := range separate(v.Addresses) {
		if !slices.Contains(t.Addresses, address) {
			t.Addresses = append(t.Addresses, address)
		}
	}
	if len(t.Addresses) > mostChosen || slices.ContainsFunc(t.Addresses, func(a string) bool { return len(a) > 255 }) {
		v.Faults["addresses"] = q.text("fault.too-long")
	}
	if v.At != "" {
		at, err := momentIn(v.At, q.formZone())
		if err != nil {
			v.Faults["at"] = q.text(err.Error())
		}
		t.At = at
	}
	if v.Broadcast && v.Part+v.Parts != "" {
		part, err := strconv.Atoi(v.Part)
		parts, err2 := strconv.Atoi(v.Parts)
		if err != nil || err2 != nil || part < 0 || part >= parts {
			v.Faults["part"] = q.text("fault.once.part")
		}
		t.Shard = xxljob.Sharding{Index: part, Total: parts}
	}
	return t
}
