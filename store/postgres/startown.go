package postgres

import "github.com/xxljob/xxljob/store"

// Starts of runs that the caller knows, and that go to its own executors, as most do: the start
// is the taking, no other node has to be there, and what is the same for all of them is said
// once. What decides about a start is as in start.go.

// isOwn reports whether a start is such a one.
func isOwn(st *store.Start) bool { return isAt(st.Owner, st.Address) && st.BootID == "" }

// startOwnStatement is the statement for a group of them.
func (s *Store) startOwnStatement(way startWay, starts []store.Start, g startGroup, answers []store.Started) statement {
	q := s.sql.startOwn
	if way.free {
		q = s.sql.startOwnFree
	}
	lo, hi := s.waitRange(starts, g)
	return way.with(q, lo, hi).by(s.startOwnArgs(starts, g, lo, hi)).into(readBriefly(starts, g, answers))
}

// startOwnArgs are its arguments. What waits to be tried again has ids from waitLo to waitHi.
func (s *Store) startOwnArgs(starts []store.Start, g startGroup, waitLo, waitHi int64) named {
	n := len(g.places)
	ids, jobs, in, versions, tokens := make([]int64, n), make([]int64, n), make([]int16, n), make([]int64, n), make([]int64, n)
	handlers, blocks, messages, routed := make([]int16, n), make([]int16, n), make([]int16, n), make([]int16, n)
	params, retries := sparseList[*string]{n: n}, sparseList[int32]{n: n}
	after, instants := sparseList[int64]{n: n}, sparseList[int64]{n: n}
	var words words
	var short shortening
	var shards shardSet
	for k, i := range g.places {
		st := &starts[i]
		shards.add(st.Shard, st.Epoch)
		ids[k], jobs[k], in[k], versions[k], tokens[k] = st.RunID, st.JobID, int16(st.Shard), st.JobVersion, st.Token
		handlers[k], blocks[k], messages[k] = words.place(st.Handler), words.place(st.Block), words.place(st.Msg)
		routed[k] = words.place(short.of(st))
		params.set(k, nonempty(st.Param))
		retries.set(k, int32(st.Retries))
		if st.AfterRetries {
			after.set(k, st.TriggerID)
			instants.set(k, milli(stored(st.Instant)))
		}
	}
	fenced, epochs := fenceArgs(shards.list)
	lo, hi := rangeOf(ids)
	s.floors.ofStarted(ids)
	return named{
		{"shards", fenced}, {"epochs", epochs}, {"wait_lo", waitLo}, {"wait_hi", waitHi},
		{"tokens", tokens}, {"address", starts[g.places[0]].Address},
		{"words", words.list}, {"handlers", handlers}, {"blocks", blocks}, {"retries", retries.value()}, {"messages", messages}, {"routed", sparse(routed)},
		{"runs", ids}, {"jobs", jobs}, {"run_shards", in}, {"versions", versions}, {"params", params.value()}, {"places", upTo(n)},
		{"lo", lo}, {"hi", hi}, {"after", after.value()}, {"instants", instants.value()},
	}
}

// ownQueries are the statements of this file.
type ownQueries struct {
	startOwn, startOwnFree query
}

func (q *ownQueries) define(sql template) {
	const message = `({{arg.words}}::text[])[({{arg.messages}}::smallint[])[s.ord]]`
	const routed = `case when coalesce(l.trigger_msg, '') = '' then ({{arg.words}}::text[])[({{arg.routed}}::smallint[])[s.ord]] end`
	start := func(free, only string) string {
		return `with ` + fence(free) + `, ` + retrying + `
	update {{schema}}.xxl_job_log l set state = {{state.started}}, start_owner = null, start_token = ({{arg.tokens}}::bigint[])[s.ord],
		executor_address = {{arg.address}}::text, inbox = null, trigger_time = (select {{now}}), taken_time = (select {{now}}), handle_time = null,
		job_version = s.version, executor_handler = ({{arg.words}}::text[])[({{arg.handlers}}::smallint[])[s.ord]],
		executor_block_strategy = ({{arg.words}}::text[])[({{arg.blocks}}::smallint[])[s.ord]],
		executor_param = s.param, executor_fail_retry_count = coalesce(({{arg.retries}}::int[])[s.ord], 0), executor_boot_id = null,
		routed = ` + routed + `, trigger_msg = case when (` + routed + `) is null then ` + say(message) + ` end
	from (select unnest({{arg.runs}}::bigint[]) id, unnest({{arg.jobs}}::int[]) job_id, unnest({{arg.run_shards}}::smallint[]) shard,
		unnest({{arg.versions}}::bigint[]) version, unnest({{arg.params}}::text[]) param, unnest({{arg.places}}::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence)) and {{arg.lo}}::bigint <= {{arg.hi}}::bigint` + only + `
	and ` + runIs("s.id") + ` and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = {{state.planned}}
	and ` + mayRun + `
	and ` + noEarlierRetry + `
	returning s.ord, l.plan_epoch, l.executor_sharding_param, l.trigger_time, l.alarm_status, l.trigger_msg, l.handle_msg`
	}
	q.startOwn = sql(start("", ""))
	q.startOwnFree = sql(start("skip locked", ` and s.id = `+freeToStart))
}
