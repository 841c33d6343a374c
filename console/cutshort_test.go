package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// TestNothingIsCutWithoutAWord: where a page names the first of many, it says that there are more.
func TestNothingIsCutWithoutAWord(t *testing.T) { onBothStores(t, testNothingIsCutWithoutAWord) }

func testNothingIsCutWithoutAWord(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	ctx := xxljob.WithActor(t.Context(), "ann")
	var parents []int64
	last := x.job("orders", "the last")
	add := func(n int) {
		for range n {
			j := must1(x.s.AddJob(ctx, xxljob.Job{App: "orders", Name: fmt.Sprintf("parent %d", len(parents)), Handler: "work", Children: []int64{last.ID}}))
			parents = append(parents, j.ID)
		}
	}
	page := "jobs/" + itoa(last.ID)
	const more = "Only the first 200 are named."
	add(200)
	root.get(page).is(200).lacks(more)
	add(1)
	root.get(page).is(200).has(more)

	addresses := make([]string, 101)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("http://10.0.0.%d:9999/", i+1)
	}
	const others = "Only the first 100 addresses are listed; others can be typed below."
	must(t, x.s.SaveGroup(ctx, xxljob.Group{App: "orders", Manual: true, Addresses: addresses[:100]}))
	root.get(page + "/once").is(200).lacks(others)
	must(t, x.s.SaveGroup(ctx, xxljob.Group{App: "orders", Manual: true, Addresses: addresses}))
	root.get(page + "/once").is(200).has(others)

	id := must1(x.s.TriggerOne(ctx, last.ID, xxljob.Trigger{}))
	const rest = "All entries about this run"
	again := func(n int) {
		for range n {
			must1(x.store.RecordChange(ctx, xxljob.Change{Verb: "kill", Object: store.ObjectRun, ObjectID: itoa(id), App: "orders"}))
		}
	}
	again(9)
	root.get("runs/" + itoa(id)).is(200).lacks(rest)
	again(1)
	root.get("runs/" + itoa(id)).is(200).has(rest)
	if root.get(root.link(rest)).is(200); strings.Count(root.body, "</tr>") != 12 {
		t.Errorf("%s has %d rows", root.at, strings.Count(root.body, "</tr>"))
	}
}
