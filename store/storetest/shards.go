package storetest

import (
	"fmt"
	"strings"

	"github.com/xxljob/xxljob/store"
)

func shardCases() []testCase {
	return []testCase{
		{"SetShardsTwiceIsNoError", setShardsTwice},
		{"AnotherNumberNamesBoth", setShardsOther},
		{"BeginFreeWithoutAnOwner", shardsBegin},
		{"FreeUnlessALiveNodeHasIt", shardsFree},
		{"TakeRaisesTheEpoch", takeShards},
		{"TakeComparesOwnerAndEpoch", takeShardsMismatch},
		{"TakeConcurrentlyGivesEachToOne", takeShardsConcurrent},
		{"ReleaseGivesUpOwnShards", releaseShards},
		{"ReleaseComparesOwnerAndEpoch", releaseShardsMismatch},
	}
}

func setShardsTwice(e *env) {
	o := e.owner("a")
	e.must(e.SetShards(e.ctx, numShards))
	want(e, "shards after the same number again", e.shardsNow(), o.shardsNow())
	want(e, "owner of shard 0", e.shardsNow()[0].Owner, "a")
}

func setShardsOther(e *env) {
	for _, n := range []int{numShards + 7, 2} {
		err := e.SetShards(e.ctx, n)
		e.wantErr("SetShards with another number", err, store.ErrShards)
		e.check(err != nil && strings.Contains(err.Error(), fmt.Sprint(n)) && strings.Contains(err.Error(), fmt.Sprint(numShards)),
			"%v: want both %d and %d named", err, n, numShards)
	}
	want(e, "number of shards after it", len(e.join("a").Shards), numShards)
}

// shardsNow reads the shards by a beat of an observer.
func (e *env) shardsNow() []store.Shard {
	e.Helper()
	return e.mustBeat(observer).Shards
}

func shardsBegin(e *env) {
	v := e.join("a")
	if len(v.Shards) != numShards {
		e.Fatalf("%d shards, want %d", len(v.Shards), numShards)
	}
	for i, s := range v.Shards {
		want(e, "shard", []any{s.ID, s.Owner, s.Free}, []any{i, "", true})
	}
}

// wantFree checks who sees which shards as free.
func (e *env) wantFree(what string, v store.View, free bool) {
	e.Helper()
	for _, s := range v.Shards {
		want(e, fmt.Sprintf("shard %d is free, %s", s.ID, what), s.Free, free)
	}
}

func shardsFree(e *env) {
	e.join("b")
	e.owner("a")
	e.wantFree("as its owner sees it", e.mustBeat("a"), false)
	e.wantFree("as another sees it", e.mustBeat("b"), false)
	e.must(e.Bury(e.ctx, "a", e.mustNode(e.mustBeat("b"), "a").Beats))
	e.wantFree("once its owner is buried", e.mustBeat("b"), true)
}

func takeShards(e *env) {
	v := e.join("a")
	taken, err := e.TakeShards(e.ctx, "a", v.Shards[1:3])
	e.must(err)
	if len(taken) != 2 {
		e.Fatalf("TakeShards took %+v of two", taken)
	}
	now := e.shardsNow()
	for _, s := range taken {
		want(e, "owner", s.Owner, "a")
		e.check(s.Epoch > v.Shards[s.ID].Epoch, "epoch %d of shard %d after %d: want it raised", s.Epoch, s.ID, v.Shards[s.ID].Epoch)
		want(e, "owner and epoch as all see them", []any{now[s.ID].Owner, now[s.ID].Epoch}, []any{"a", s.Epoch})
	}
	want(e, "a shard that was not asked for", now[0], v.Shards[0])
}

func takeShardsMismatch(e *env) {
	o := e.owner("a")
	e.join("b")
	first := o.shards[0]
	wrong := map[string]store.Shard{
		"another owner": {ID: 0, Owner: "c", Epoch: first.Epoch},
		"no owner":      {ID: 0, Owner: "", Epoch: first.Epoch},
		"an old epoch":  {ID: 0, Owner: "a", Epoch: first.Epoch - 1},
		"a later epoch": {ID: 0, Owner: "a", Epoch: first.Epoch + 1},
	}
	before := e.shardsNow()
	for name, s := range wrong {
		taken, err := e.TakeShards(e.ctx, "b", []store.Shard{s})
		e.must(err)
		want(e, "shards taken with "+name, len(taken), 0)
		want(e, "shards after it", e.shardsNow(), before)
	}
	taken, err := e.TakeShards(e.ctx, "b", []store.Shard{wrong["no owner"], o.shards[2]})
	e.must(err)
	if len(taken) != 1 || taken[0].ID != 2 {
		e.Errorf("TakeShards of one that matches and one that does not: %+v, want shard 2 alone", taken)
	}
}

// takeShardsConcurrent: most of the times the shards are free. To take those of one that has not
// been heard of to let go is waited for.
func takeShardsConcurrent(e *env) {
	for round := range 20 {
		shards := e.shardsNow()
		if round%5 > 0 {
			for _, s := range shards {
				e.must(e.ReleaseShards(e.ctx, s.Owner, []store.Shard{s}))
			}
			shards = e.shardsNow()
		}
		const callers = 4
		var taken [callers][]store.Shard
		var errs [callers]error
		var calls []func()
		for i := range callers {
			inc := fmt.Sprintf("n%d-%d", i, round)
			e.join(inc)
			calls = append(calls, func() { taken[i], errs[i] = e.TakeShards(e.ctx, inc, shards) })
		}
		e.race(calls...)
		takers := map[int]int{}
		for i := range callers {
			e.must(errs[i])
			for _, s := range taken[i] {
				takers[s.ID]++
			}
		}
		for _, s := range shards {
			want(e, fmt.Sprintf("takers of shard %d", s.ID), takers[s.ID], 1)
		}
	}
}

func releaseShards(e *env) {
	o := e.owner("a")
	e.must(e.ReleaseShards(e.ctx, "a", o.shards[:1]))
	now := e.shardsNow()
	want(e, "released shard: owner, free", []any{now[0].Owner, now[0].Free}, []any{"", true})
	e.check(now[0].Epoch >= o.epoch(0), "the epoch went back from %d to %d", o.epoch(0), now[0].Epoch)
	want(e, "owner of a shard that was kept", now[1].Owner, "a")
	e.join("b")
	taken, err := e.TakeShards(e.ctx, "b", now[:1])
	e.must(err)
	e.check(len(taken) == 1 && taken[0].Epoch > o.epoch(0), "after a release b took %+v", taken)
}

func releaseShardsMismatch(e *env) {
	o := e.owner("a")
	b := o.overtakenBy("b")
	e.must(e.ReleaseShards(e.ctx, "a", o.shards))
	e.must(e.ReleaseShards(e.ctx, "a", b.shards))
	e.must(e.ReleaseShards(e.ctx, "b", o.shards))
	for _, s := range e.shardsNow() {
		want(e, "owner after releases that do not match", s.Owner, "b")
	}
}
