package console_test

import (
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// preview asks what a schedule means, in virtual time: only so many a second are answered.
func (b *browser) preview(kind, conf, zone, dst string) *browser {
	b.Helper()
	time.Sleep(200 * time.Millisecond)
	b.header.Set("HX-Request", "true")
	b.header.Set("HX-Request-Type", "partial")
	defer func() { b.header.Del("HX-Request"); b.header.Del("HX-Request-Type") }()
	return b.get("preview?" + url.Values{"type": {kind}, "conf": {conf}, "zone": {zone}, "dst": {dst}}.Encode()).is(200)
}

// TestPreview: of each type, and of what is none.
func TestPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is the first of January 2000
		x := newSite(t)
		root := x.admin()
		root.preview("CRON", "0 0 3 * * ?", "UTC", "").has("at 03:00:00 every day").lacks("<html")
		root.preview("CRONTAB", "0 3 * * *", "UTC", "").has("03:00")
		root.preview("FIX_RATE", "90", "", "").has("every 1 minute 30 seconds")
		root.preview("FIX_DELAY", "1.5", "", "")
		root.preview("ONCE", "2099-01-01T00:00:00Z", "", "").has("2099-01-01 00:00:00")
		root.preview("NONE", "ignored", "", "").lacks(`class="fault"`)
		for _, bad := range [][4]string{{"CRON", "", "", ""}, {"CRON", "0 0 3 * *", "", ""}, {"CRON", "61 0 3 * * ?", "", ""}, {"CRONTAB", "0 0 3 * * ?", "", ""}, {"FIX_RATE", "often", "", ""}, {"FIX_RATE", "-1", "", ""},
			{"FIX_DELAY", "", "", ""}, {"ONCE", "tomorrow", "", ""}, {"ONCE", "1999-01-01T00:00:00Z", "", ""}, {"CRON", "0 0 3 30 2 ?", "", ""}, {"SOMETIMES", "x", "", ""}, {"CRON", "0 0 3 * * ?", "Nowhere/At-All", ""},
			{"CRON", "0 0 3 * * ?", "../../etc/passwd", ""}, {"CRON", strings.Repeat("9", 1000), "", ""}, {"CRON", "<script>", "", ""}} {
			root.preview(bad[0], bad[1], bad[2], bad[3]).lacks("<script")
			if !strings.Contains(root.body, `class="fault"`) || strings.Contains(root.body, `class="instants"`) {
				t.Errorf("%q: %s", bad, root.text())
			}
		}
		root.get("preview?type=CRON&conf=%ff").is(200)
		root.preview("CRON", "0 0 3 ? * 1-5", "UTC", "").has("As a crontab this would mean something else", "In Quartz, 1 is Sunday")
		root.preview("CRONTAB", "0 3 * * 1-5", "UTC", "").has("As a Quartz expression this would mean something else")
		root.preview("CRON_SECONDS", "0 0 3 * * 1-5", "UTC", "").has("at 03:00:00 on Monday to Friday", "As a Quartz expression this would mean something else")
		root.preview("CRON_SECONDS", "0 0 3 13 * 5", "UTC", "").has("In Spring this would mean something else")
		root.preview("CRON", "0 0 3 ? * MON-FRI", "UTC", "").lacks("something else")
	})
}

// TestPreviewAroundClockChanges: what becomes of the hour that does not exist, and of the one
// that comes twice, by both policies.
func TestPreviewAroundClockChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is the first of January 2000
		x := newSite(t)
		root := x.admin()
		time.Sleep(24 * time.Hour)
		root.post("login", url.Values{"name": {"root"}, "password": {password}})
		root.post("look", url.Values{"zone": {"UTC"}})
		const zone = "Europe/Berlin"
		root.preview("CRON", "0 30 2 * * ?", zone, "").has("Clocks go forward at 2000-03-26 01:00:00 +01:00 → +02:00", "2000-03-26 03:00:00 +02:00 moved to the end of the gap",
			"Clocks go back at 2000-10-29 01:00:00 +02:00 → +01:00", "2000-10-29 02:30:00 +02:00 first of two")
		root.preview("CRON", "0 30 2 * * ?", zone, "QUARTZ").has("2000-03-26 02:30:00 this time does not exist", "2000-10-29 02:30:00 +01:00 second of two").lacks("03:00:00 +02:00")
		root.preview("CRON", "0 0/30 * * * ?", zone, "").has("2000-03-26 01:30:00 +01:00 2000-03-26 03:00:00 +02:00", "2000-10-29 02:30:00 +02:00 first of two", "2000-10-29 02:30:00 +01:00 second of two")
		root.preview("CRON", "0 0 12 * * ?", zone, "").has("The job is not due around that time.", "2000-01-03 11:00:00 2000-01-03 12:00:00 +01:00")
		root.preview("CRON", "0 0 12 * * ?", "Asia/Shanghai", "").lacks("Clocks are set")
	})
}

// TestPreviewWithoutScripts: the form is sent to see what it means, and comes back as it was.
func TestPreviewWithoutScripts(t *testing.T) { inMemory(t, testPreviewWithoutScripts) }

func testPreviewWithoutScripts(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	root.post("jobs/new", root.newForm("conf", "0 15 4 * * ?", "show", "preview", "handler", "typed")).is(200).has("at 04:15:00 every day")
	if root.filled("jobform").Get("handler") != "typed" {
		t.Error("what was typed is lost")
	}
	j := x.job("orders", "nightly")
	edit := "jobs/" + itoa(j.ID) + "/edit"
	root.post(edit, with(root.get(edit).filled("jobform"), "conf", "0 15 4 * * ?", "show", "preview")).is(200).has("at 04:15:00 every day")
	if now := must1(x.store.Job(t.Context(), j.ID)); now.Schedule != j.Schedule {
		t.Errorf("it was saved: %v", now.Schedule)
	}
}
