package console

// Muting: somebody knows of a job that fails, or of a cause, and wants neither alarms of it nor to see
// it on top.

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

// muteSpans are for how long one may mute by a choice.
var muteSpans = []time.Duration{time.Hour, 4 * time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, store.MostMuted}

// muteView is the page on which one mutes, or ends that.
type muteView struct {
	Key, To, Back     string // what it is about, where the form is sent, and where one goes back to
	Title, About, App string
	Was               *store.Mute
	Spans             []muteSpan
	Until, Note, Zone string
	Faults            map[string]string
}

// muteSpan is a choice.
type muteSpan struct {
	Value, Text string
	Chosen      bool
}

// muted are the mutes, as far as the user may see them. A mute of a cause of the cluster is everybody's.
func (q *request) muted(all []store.Mute) []store.Mute {
	return slices.DeleteFunc(slices.Clone(all), func(m store.Mute) bool { return m.App != "" && !allowed(q.user, see, m.App) })
}

// byTrusted has no mute end by a clock of the store that the scheduler does not trust.
func (c *console) byTrusted(ctx context.Context) context.Context {
	if c.Scheduler == nil {
		return ctx
	}
	for _, x := range c.Scheduler.Troubles() {
		if at, ahead := store.ClockTrusted(x.Seen); x.Cause == xxljob.TroubleClock && ahead {
			return store.WithTrustedTime(ctx, at)
		}
	}
	return ctx
}

// readMutes reads the mutes; none where the store keeps none.
func (q *request) readMutes() ([]store.Mute, error) {
	if q.mutes == nil {
		return nil, nil
	}
	return shared(q, "mutes", func(ctx context.Context) ([]store.Mute, error) { return q.mutes.Mutes(q.byTrusted(ctx)) })
}

// mayMute reports whether the user may mute what is about an app. Who may do everything mutes what is
// about the cluster.
func (q *request) mayMute(app string) bool {
	if q.mutes == nil || q.ReadOnly {
		return false
	}
	return allowed(q.user, muting(app), app)
}

// muting is what one has to be allowed to mute what is about an app, or about the cluster.
func muting(app string) action {
	if app == "" {
		return govern
	}
	return operate
}

// muteTitle is what a mute is about, in words, where no finding says it.
func (q *request) muteTitle(m *store.Mute) string {
	cause, _, _ := strings.Cut(m.Key, "/")
	for _, kind := range []string{"finding.", "trouble."} {
		if key := kind + cause; q.look.Language.Has(key) {
			return q.text(key)
		}
	}
	if m.JobID != 0 {
		return q.text("mute.job")
	}
	return cause
}

// muteOfJob is the mute of the request's job, or nil.
func (q *request) muteOfJob(all []store.Mute) *store.Mute {
	key := store.MuteOfJob(q.job.ID)
	for i := range all {
		if all[i].Key == key {
			return &all[i]
		}
	}
	return nil
}

// muteJobForm asks whether the request's job is to be muted, or unmuted.
func (q *request) muteJobForm() error { return q.withJobMute(q.showMute) }
func (q *request) muteJob() error     { return q.withJobMute(q.saveMute) }

func (q *request) withJobMute(do func(*muteView, int64) error) error {
	if q.mutes == nil {
		return notOffered("store.MuteKeeper")
	}
	all, err := q.mutes.Mutes(q.byTrusted(q.ctx))
	if err != nil {
		return err
	}
	id := strconv.FormatInt(q.job.ID, 10)
	return do(&muteView{Key: store.MuteOfJob(q.job.ID), To: "jobs/" + id + "/mute", Back: "jobs/" + id, Title: q.text("mute.job"), About: q.job.Name, App: q.job.App, Was: q.muteOfJob(all)}, q.job.ID)
}

// muteCauseForm asks whether a cause is to be muted, or unmuted.
func (q *request) muteCauseForm() error {
	if q.Query("key") == "" {
		return q.Redirect("overview")
	}
	return q.withCauseMute(q.Query("key"), http.StatusNotFound, q.showMute)
}

func (q *request) muteCause() error {
	return q.withCauseMute(q.Field("key"), http.StatusUnprocessableEntity, q.saveMute)
}

// withCauseMute finds the cause that a key names among those that the user sees: what is found now, and
// what is muted.
func (q *request) withCauseMute(key string, unknown int, do func(*muteView, int64) error) error {
	none := &web.Problem{Status: unknown, Key: "problem.mute.unknown"}
	if q.mutes == nil {
		return notOffered("store.MuteKeeper")
	}
	if key == "" || len(key) > 255 || !utf8.ValidString(key) || strings.HasPrefix(key, "job/") {
		return none
	}
	all, err := q.mutes.Mutes(q.byTrusted(q.ctx))
	if err != nil {
		return err
	}
	v := &muteView{Key: key, To: "mute", Back: "overview"}
	for _, m := range q.muted(all) {
		if m.Key == key {
			v.Was, v.App, v.Title, v.About = &m, m.App, q.muteTitle(&m), m.App
		}
	}
	if v.Was == nil {
		// All that is read to look for one cause is read once for all who ask, as for the overview.
		world, err := q.live.Get(q.ctx, "overview", func(ctx context.Context) (any, error) { return q.readWorld(ctx) })
		if err != nil {
			return asked(err)
		}
		seen := q.seenOf(world.Value.(finding.World))
		found := q.attention(seen)
		at := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Key() == key })
		if at < 0 {
			return none
		}
		l := q.causeLine(found[at], &seen)
		v.App, v.Title, v.About = l.App, l.Title, l.About
	}
	if !q.mayMute(v.App) {
		return forbidden(muting(v.App))
	}
	return do(v, 0)
}

func (q *request) showMute(v *muteView, _ int64) error { return q.muteForm(v, http.StatusOK, "1h0m0s") }

func (q *request) muteForm(v *muteView, status int, chosen string) error {
	v.Zone = q.formZone().String()
	for _, d := range muteSpans {
		v.Spans = append(v.Spans, muteSpan{d.String(), q.look.Span(d), d.String() == chosen})
	}
	return q.show("mute", status, v)
}

// saveMute mutes, or ends a mute, as the form says.
func (q *request) saveMute(v *muteView, job int64) error {
	if q.Field("act") == "unmute" {
		err := q.mutes.DropMute(q.byTrusted(q.ctx), v.Key)
		if err != nil && !errors.Is(err, xxljob.ErrNotFound) { // it is over by now
			return err
		}
		return q.Redirect(saying(v.Back, "unmuted"))
	}
	v.Faults, v.Until, v.Note = map[string]string{}, q.Field("until"), strings.TrimSpace(q.Field("note"))
	now := time.Now()
	var until time.Time
	span, err := time.ParseDuration(q.Field("for"))
	switch {
	case v.Until != "":
		if until, err = momentIn(v.Until, q.formZone()); err != nil {
			v.Faults["until"] = q.text("mute.fault.time")
		}
	case err == nil && slices.Contains(muteSpans, span):
		until = now.Add(min(span, store.MostMuted-time.Minute)) // the store's clock may be behind
	default:
		v.Faults["until"] = q.text("mute.fault.none")
	}
	switch d := until.Sub(now); {
	case v.Faults["until"] != "":
	case d <= 0:
		v.Faults["until"] = q.text("mute.fault.past")
	case d > store.MostMuted:
		v.Faults["until"] = q.text("mute.fault.long")
	}
	if len(v.Note) > store.MostMuteNote || !store.CanBeStored(v.Note) {
		v.Faults["note"] = q.text("mute.fault.note", "n", store.MostMuteNote)
	}
	if len(v.Faults) == 0 {
		_, err := q.mutes.PutMute(q.byTrusted(q.ctx), store.Mute{Key: v.Key, App: v.App, JobID: job, Until: until, Note: v.Note})
		switch list := xxljob.FieldErrors(err); {
		case err == nil:
			return q.Redirect(saying(v.Back, "muted"))
		case len(list) == 0:
			return err
		default: // its clock is another one
			v.Faults["until"] = q.text("mute.fault.long")
		}
	}
	return q.muteForm(v, http.StatusUnprocessableEntity, q.Field("for"))
}

// MuteOf is where one mutes a cause, or ends that.
func (p *page) MuteOf(key string) string { return "mute?" + url.Values{"key": {key}}.Encode() }

// MayMute reports whether the user may mute what is about an app.
func (p *page) MayMute(app string) bool { return p.q.mayMute(app) }
