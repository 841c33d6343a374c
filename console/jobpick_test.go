package console_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/xxljob/xxljob/console"
)

// TestJobsByName: jobs are offered by a part of their names and said by name, ID, or app and key; where
// several may be meant the form asks which; and who may not see a job neither finds nor adds it.
func TestJobsByName(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		ed := x.user(console.User{Name: "ed", Apps: map[string]console.Role{"orders": console.Editor}})
		load, first, second, hidden := x.job("orders", "load <ledger>"), x.job("orders", "report"), x.job("billing", "report"), x.job("billing", "invoices")
		ed.live()
		if ed.get("jobs/find?text=r").is(200); ed.body == "" {
			t.Error("nothing is offered")
		}
		ed.get("jobs/find?text=ledger").has("").lacks("invoices", "<ledger>")
		if ed.get("jobs/find?text=invoices"); len(ed.body) > 1 {
			t.Errorf("a job of another app is offered: %s", ed.body)
		}
		root.get("jobs/find?text=report")
		if root.at != "/console/jobs?text=report" {
			t.Errorf("without scripts one comes to %s", root.at)
		}
		ed.header.Del("HX-Request")
		page := "jobs/" + itoa(load.ID) + "/edit"
		form := root.get(page).filled("jobform")
		root.post(page, with(form, "children.add", "Report")).is(422).has("Several jobs may be meant by “Report”", "#"+itoa(first.ID)+" report · orders", "#"+itoa(second.ID)+" report · billing")
		root.post(page, with(form, "children.add", "nothing is called so")).is(422).has("No job that you may see is called “nothing is called so”.")
		root.post(page, with(form, "children.add", "#"+itoa(second.ID)+" report · billing", "after.add", "invoic")).is(422).has("Several jobs may be meant by “invoic”", "#"+itoa(hidden.ID)+" invoices · billing") // it may be found by a tag of somebody else's
		root.post(page, with(form, "children.add", "#"+itoa(second.ID)+" report · billing", "after.add", "Invoices")).is(200)
		j := must1(x.store.Job(t.Context(), load.ID))
		if !slices.Equal(j.Children, []int64{second.ID}) || !slices.Equal(j.After, []int64{hidden.ID}) {
			t.Errorf("children %v, after %v", j.Children, j.After)
		}
		root.get(page).has("#"+itoa(second.ID)+" report · billing", "invoices · billing")
		own := "jobs/" + itoa(first.ID) + "/edit"
		form = ed.get(own).filled("jobform")
		for _, said := range []string{"invoices", itoa(hidden.ID), "#" + itoa(hidden.ID) + " invoices · billing"} {
			ed.post(own, with(form, "children.add", said)).is(422).has("No job that you may see is called")
		}
		ed.post(own, with(form, "children.add", "load <ledger>", "show", "preview")).is(200).has("#" + itoa(load.ID) + " load <ledger> · orders")

		root.get("runs?form=1&state=bad&job=" + url.QueryEscape("load"))
		if want := "/console/runs?job=" + itoa(load.ID) + "&state=bad"; root.at != want {
			t.Errorf("the filter leads to %s, want %s", root.at, want)
		}
		root.get("runs?form=1&job=report").is(200).has("Which job?", "report", "billing")
		ed.get("runs?form=1&job=report")
		if want := "/console/runs?job=" + itoa(first.ID); ed.at != want {
			t.Errorf("of two jobs that are called so one is seen, and the filter leads to %s", ed.at)
		}
		ed.get("runs?form=1&job=invoices").is(422).has("No job that you may see")
	})
}
