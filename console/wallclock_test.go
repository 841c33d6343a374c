package console_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// TestTwin goes through each half hour of two years in zones that change their clocks in different
// ways: two moments have one reading exactly where twin says so.
func TestTwin(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai", "America/Sao_Paulo", "Africa/Casablanca", "UTC"} {
		zone := must1(time.LoadLocation(name))
		at := map[string][]time.Time{}
		for now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); now.Year() < 2028; now = now.Add(30 * time.Minute) {
			wall := now.In(zone).Format(time.DateTime)
			at[wall] = append(at[wall], now)
		}
		twins := 0
		for wall, list := range at {
			for i, now := range list {
				other, is := console.Twin(now.In(zone))
				if is != (len(list) == 2) || is && !other.Equal(list[1-i]) {
					t.Errorf("%s in %s: %v, %v; want one of %v", wall, name, other, is, list)
				}
				if is {
					twins++
				}
			}
		}
		if changes := map[string]bool{"Asia/Shanghai": true, "UTC": true, "America/Sao_Paulo": true}; (twins == 0) != changes[name] {
			t.Errorf("%s: %d readings that come twice", name, twins)
		}
	}
}

// TestTimesAroundClockChanges: a reading that comes twice is told apart on pages, the first of two
// is what a form means, and one that never comes is a fault.
func TestTimesAroundClockChanges(t *testing.T) { inMemory(t, testTimesAroundClockChanges) }

func testTimesAroundClockChanges(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	j := x.job("orders", "nightly")
	for _, name := range []string{"jobs/" + itoa(j.ID)} {
		b.post("look", map[string][]string{"zone": {"Europe/Berlin"}, "next": {name}}).is(200)
	}
	edit := "jobs/" + itoa(j.ID) + "/edit"
	save := func(text string) *browser {
		return b.post(edit, with(b.get(edit).filled("jobform"), "notbefore", text))
	}
	for text, want := range map[string]string{
		"2026-10-25T02:30:00": "2026-10-25T00:30:00Z", "2026-10-25T01:59": "2026-10-24T23:59:00Z", "2026-10-25T03:00:00": "2026-10-25T02:00:00Z", "2026-03-29T03:00:00": "2026-03-29T01:00:00Z",
	} {
		save(text).is(200).has("The job has been saved.")
		if got := must1(x.store.Job(t.Context(), j.ID)).NotBefore.Format(time.RFC3339); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	save("2026-03-29T02:30:00").is(422).has("This time does not exist: the clocks go forward over it.")

	// What is stored is not moved by a save that leaves the field alone.
	second := time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC)
	k := must1(x.store.Job(t.Context(), j.ID))
	k.NotBefore = second
	must1(x.s.UpdateJob(t.Context(), k))
	b.post(edit, with(b.get(edit).filled("jobform"), "author", "ann")).is(200).has("2026-10-25 02:30:00 +01:00")
	if got := must1(x.store.Job(t.Context(), j.ID)).NotBefore; !got.Equal(second) {
		t.Errorf("it is %v afterwards, want %v", got, second)
	}
}

// TestInstantsAroundClockChanges: the page of a job says what a change of clocks does to its next
// instants, in the zone of the job, which who likes sees all times of the job in.
func TestInstantsAroundClockChanges(t *testing.T) { inMemory(t, testInstantsAroundClockChanges) }

func testInstantsAroundClockChanges(t *testing.T) {
	for _, c := range []struct{ zone, conf, at, note string }{
		{"Europe/Berlin", "0 30 2 * * ?", "2026-03-28T12:00:00Z", "moved"},
		{"Europe/Berlin", "0 30 2 * * ?", "2026-10-24T12:00:00Z", "first"},
		{"Europe/Berlin", "0 0/30 * * * ?", "2026-10-25T00:45:00Z", "second"},
		{"Europe/Berlin", "0 30 2 * * ?", "2026-06-24T12:00:00Z", ""},
		{"UTC", "0 30 2 * * ?", "2026-03-28T12:00:00Z", ""},
	} {
		s := xxljob.Cron(c.conf).In(c.zone)
		now := must1(time.Parse(time.RFC3339, c.at))
		found := ""
		for _, at := range must1(s.Upcoming(now, 1)) {
			found = console.NoteOf(s, at)
		}
		if found != c.note {
			t.Errorf("%s in %s after %s: %q, want %q", c.conf, c.zone, c.at, found, c.note)
		}
	}
	x := newSite(t)
	b := x.admin()
	j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "tokyo", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?").In("Asia/Tokyo")}))
	run := x.run(j)
	b.post("look", map[string][]string{"zone": {"job"}, "next": {"jobs"}}).is(200).has("UTC")
	for _, page := range []string{"jobs/" + itoa(j.ID), "runs/" + itoa(run.ID), "jobs/" + itoa(j.ID) + "/edit"} {
		b.get(page).is(200).has("UTC+9")
	}
	b.get("runs").has("UTC ·").lacks("UTC+9")
}
