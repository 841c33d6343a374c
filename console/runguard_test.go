package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

func init() { known["br"], known["rect"] = true, true } // pages of runs have these as well

// TestHostileRuns: whatever handlers log, return and say, and whatever is looked for, it is text.
func TestHostileRuns(t *testing.T) { inMemory(t, testHostileRuns) }

func testHostileRuns(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	run := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
		for _, evil := range hostile {
			task.Log().Info(evil, evil, evil)
			task.Log().Info("\x1b[31" + evil + "m\x1b]8;;" + evil + "\x07\x1b[1;" + evil + "\u202e\x00")
			task.Progress(1, evil)
		}
		return errors.New(strings.Join(hostile, "\n"))
	})
	page := "runs/" + itoa(run.ID)
	for _, p := range []string{"", "/log", "/log?from=1", "/kill"} {
		if root.get(page + p).is(200); p != "/kill" && !strings.Contains(root.body, "&lt;svg onload=alert(1)&gt;") {
			t.Errorf("the lines are not on the page %q", p)
		}
		inert(t, "runs/{id}"+p, "all", root.body)
	}
	for _, evil := range hostile {
		ctx := xxljob.WithActor(t.Context(), evil)
		again := must1(x.s.TriggerOne(ctx, run.JobID, xxljob.Trigger{Param: &evil}))
		value := string(must1(json.Marshal(map[string]string{evil: evil + "\n" + evil})))
		must1(x.store.RecordChange(ctx, xxljob.Change{Verb: "odd", Object: store.ObjectJob, JobID: run.JobID, Before: strings.Replace(value, ":", ": ", 1), After: value}))
		q, one := url.QueryEscape(evil), "runs/"+itoa(again)
		for _, p := range []string{one, one + "?said=" + q + "&seen=" + q, one + "/kill", one + "/log?find=" + q, "runs?type=" + q + "&seen=" + q + "&since=" + q, "runs?form=1&text=" + q, "changes", "changes?actor=" + q + "&verb=" + q + "&object=" + q + "&id=" + q, "changes?form=1&actor=" + q} {
			root.get(p)
			inert(t, p, evil, root.body)
		}
		for _, form := range []url.Values{{"do": {"kill"}, "id": {itoa(again)}}, {"do": {evil}, "id": {evil}}, {"do": {evil}, "ids": {itoa(again)}}} {
			root.post("runs/bulk", form)
			inert(t, "runs/bulk", evil, root.body)
		}
	}
}
