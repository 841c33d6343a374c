package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
)

// startBatch is how many runs one statement starts at most.
const startBatch = 1000

// Start marks planned runs started or refused. Starts that may depend on each
// other go in statements of their own, one after the other; all others are one.
func (s *Store) Start(ctx context.Context, starts []xxljob.Start) ([]xxljob.Started, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	answers := make([]xxljob.Started, len(starts))
	for _, g := range groupStarts(starts) {
		if err := s.startGroup(ctx, starts, g, answers); err != nil {
			return nil, failed(err, "start %d runs", len(starts))
		}
	}
	return answers, nil
}

// startGroup are starts, by their places, that fit into one statement.
type startGroup struct {
	places  []int
	refused bool
	targets []string // of the one broadcast that it is
}

// groupStarts keeps the order among starts of one run, and among starts of one
// serial job.
func groupStarts(starts []xxljob.Start) []startGroup {
	var groups []startGroup
	plain := -1 // the group that plain starts are added to
	busy := map[int64]bool{}
	epochs := map[int]int64{} // of the group's shards: a fence has one for each
	for i := range starts {
		st := &starts[i]
		refused := st.State == xxljob.StateRefused
		single := len(st.Targets) > 0 || refused
		epoch, has := epochs[st.Shard]
		clash := busy[-st.RunID] || st.Serial && busy[st.JobID] || has && epoch != st.Epoch
		if plain < 0 || clash || single || len(groups[plain].places) == startBatch {
			groups = append(groups, startGroup{refused: refused})
			clear(busy)
			clear(epochs)
			plain = len(groups) - 1
		}
		g := &groups[plain]
		g.places = append(g.places, i)
		busy[-st.RunID], busy[st.JobID] = true, true
		epochs[st.Shard] = st.Epoch
		if single {
			g.targets = st.Targets
			if refused {
				g.targets = nil
			}
			plain = -1
		}
	}
	return groups
}

// startGroup starts a group and fills in the answers.
func (s *Store) startGroup(ctx context.Context, starts []xxljob.Start, g startGroup, answers []xxljob.Started) error {
	sql := s.sql.start
	if s.careful() {
		sql = s.sql.startFree
	}
	ids := make([]int64, len(g.places))
	for k, i := range g.places {
		ids[k] = starts[i].RunID
	}
	var done arming
	start := func(sql string) (err error) {
		done, err = s.startBy(ctx, sql, starts, g, answers)
		return err
	}
	err := s.byDay(sql, ids, start)
	if lockedOut(err) && sql == s.sql.start {
		s.beCareful()
		err = s.byDay(s.sql.startFree, ids, start)
	}
	if err != nil {
		return err
	}
	var left []int
	for _, i := range g.places {
		if answers[i].Run.ID == 0 {
			left = append(left, i)
		}
	}
	for _, i := range g.places {
		s.serials.parts(answers[i].Siblings)
	}
	s.tell(done)
	s.tellStarted(starts, g.places, answers)
	if len(left) == 0 {
		return nil
	}
	if err := s.explain(ctx, starts, left, answers); err != nil {
		return err
	}
	for _, i := range left {
		if a := &answers[i]; !g.refused && (a.Status != xxljob.StartGone || a.Run.State.Ended()) {
			s.serials.end(starts[i].RunID) // others that are gone were started before
		}
	}
	return nil
}

func (s *Store) startBy(ctx context.Context, sql string, starts []xxljob.Start, g startGroup, answers []xxljob.Started) (arming, error) {
	var done arming
	for _, i := range g.places {
		answers[i] = xxljob.Started{}
	}
	if !g.refused && slices.ContainsFunc(g.places, func(i int) bool { return starts[i].Serial }) {
		// Only the owner's process gets past the fence, so it is enough that it
		// takes turns.
		<-s.serials.turn.ask()
		defer s.serials.turn.done()
	}
	var row runRow
	var ord int
	st := statement{sql, s.startArgs(starts, g), func(rows pgx.Rows) error {
		run, err := row.scan(rows, &ord)
		if err == nil {
			answers[g.places[ord-1]].Run = run
		}
		return err
	}}
	b := bounds{name: "start", lock: quickPatience}
	if !g.refused && g.targets == nil {
		return done, s.one(ctx, b, st)
	}
	i := g.places[0]
	return done, s.withPartitions(ctx, func() error {
		return s.inTx(ctx, b, func(t *tx) error {
			answers[i] = xxljob.Started{}
			if g.refused { // it ends a planned run: jobs are locked before those
				if err := t.do(ctx, statement{s.sql.lockIdleFree, []any{[]int64{starts[i].JobID}}, nil}); err != nil {
					return err
				}
			}
			if err := t.do(ctx, st); err != nil || answers[i].Run.ID == 0 {
				return err
			}
			if g.refused {
				var err error
				done, err = s.arm(ctx, t, []runEnd{endOf(&answers[i].Run)}, nil)
				return err
			}
			if len(g.targets) < 2 {
				return nil
			}
			return t.do(ctx, s.insertSiblings(&starts[i], &answers[i]))
		})
	})
}

// insertSiblings inserts the parts of a broadcast behind the first.
func (s *Store) insertSiblings(st *xxljob.Start, answer *xxljob.Started) statement {
	var sharding, addresses []string
	var owners, inboxes, boots []*string
	var mine []bool
	for i, address := range st.Targets[1:] {
		boot := ""
		if i+1 < len(st.TargetBoots) {
			boot = st.TargetBoots[i+1]
		}
		boots = append(boots, nonempty(boot))
		sharding = append(sharding, xxljob.Sharding{Index: i + 1, Total: len(st.Targets)}.String())
		addresses = append(addresses, address)
		owners = append(owners, nonempty(ownerColumn(st.Owner, address)))
		inboxes = append(inboxes, nonempty(inboxColumn(st.Owner, address)))
		mine = append(mine, isAt(st.Owner, address))
	}
	answer.Siblings = nil
	return statement{s.sql.insertSiblings, siblingArgs.values(named{
		"run": st.RunID, "shardings": sharding, "addresses": addresses, "owners": owners, "inboxes": inboxes, "taken": mine, "boots": sparse(boots),
	}), readRuns(&answer.Siblings)}
}

// inboxColumn is the incarnation that a run is handed over to; nothing, for null,
// where the address is not an attached executor's, or is the owner's own.
func inboxColumn(owner, address string) string {
	if incarnation, attached := xxljob.LocalIncarnation(address); attached && incarnation != owner {
		return incarnation
	}
	return ""
}

// startArgs are the arguments of a start.
func (s *Store) startArgs(starts []xxljob.Start, g startGroup) []any {
	n := len(g.places)
	ids, jobs, in := make([]int64, n), make([]int64, n), make([]int16, n)
	versions, tokens, params, retries := make([]int64, n), make([]int64, n), make([]*string, n), make([]int32, n)
	owners, addresses, inboxes, mine := make([]int16, n), make([]int16, n), make([]int16, n), make([]bool, n)
	handlers, blocks, shardings, messages, busy, boots := make([]int16, n), make([]int16, n), make([]int16, n), make([]int16, n), make([]int16, n), make([]int16, n)
	var words words
	var shards []xxljob.Shard
	seen := map[xxljob.Shard]bool{}
	var there, targets []string
	for k, i := range g.places {
		st := &starts[i]
		if sh := (xxljob.Shard{ID: st.Shard, Epoch: st.Epoch}); !seen[sh] {
			seen[sh] = true
			shards = append(shards, sh)
		}
		ids[k], jobs[k], in[k], versions[k] = st.RunID, st.JobID, int16(st.Shard), st.JobVersion
		handlers[k], blocks[k], params[k] = words.place(st.Handler), words.place(st.Block), nonempty(st.Param)
		retries[k], messages[k] = int32(st.Retries), words.place(st.Msg)
		if g.refused {
			continue
		}
		free := s.serials.begin(st)
		tokens[k], addresses[k] = st.Token, words.place(st.Address)
		owners[k], inboxes[k] = words.place(ownerColumn(st.Owner, st.Address)), words.place(inboxColumn(st.Owner, st.Address))
		mine[k], boots[k] = isAt(st.Owner, st.Address), words.place(st.BootID)
		for _, address := range append([]string{st.Address}, g.targets...) {
			if inc := inboxColumn(st.Owner, address); inc != "" && !slices.Contains(there, inc) {
				there = append(there, inc)
			}
			if st.Serial && !free && isAttached(address) {
				busy[k], targets = words.place(address), g.targets
			}
		}
		if len(st.Targets) > 0 {
			shardings[k] = words.place(xxljob.Sharding{Index: 0, Total: len(st.Targets)}.String())
		}
	}
	ids16, epochs := fenceArgs(shards)
	lo, hi := rangeOf(ids)
	_, openHi := s.openRange()
	openLo := s.started.get(ids)
	state := xxljob.StateStarted
	if g.refused {
		state = xxljob.StateRefused
	}
	all := 0 // of a broadcast, every node has to be there
	if len(g.targets) > 0 {
		all = len(there)
	}
	reason := ""
	if g.refused { // alone in its group
		reason = starts[g.places[0]].HandleMsg
	}
	return startArguments.values(named{
		"fence_shards": ids16, "fence_epochs": epochs, "nodes": there, "state": int16(state), "ids": ids, "jobs": jobs, "shards": in, "versions": versions,
		"tokens": tokens, "owners": sparse(owners), "addresses": addresses, "inboxes": sparse(inboxes), "taken": sparse(mine),
		"handlers": handlers, "blocks": blocks, "params": sparse(params), "retries": retries, "shardings": sparse(shardings), "messages": messages,
		"busy": sparse(busy), "open_lo": openLo, "open_hi": openHi, "targets": attachedOnly(targets), "lo": lo, "hi": hi, "all": all,
		"words": words.list, "ords": upTo(n), "boots": sparse(boots), "reason": nonempty(reason),
	})
}

func attachedOnly(addresses []string) (attached []string) {
	for _, a := range addresses {
		if isAttached(a) {
			attached = append(attached, a)
		}
	}
	return attached
}

func isAttached(address string) bool {
	_, attached := xxljob.LocalIncarnation(address)
	return attached
}

// startArguments are those of a start.
var startArguments = argumentsOf(
	"fence_shards fence_epochs nodes state ids jobs shards versions tokens owners addresses inboxes taken",
	"handlers blocks params retries shardings messages busy open_lo open_hi targets lo hi all words ords",
	"boots reason",
)

// siblingArgs are those of the further parts of a broadcast.
var siblingArgs = argumentsOf("run shardings addresses owners inboxes taken boots")

// startQueries are the statements of this file.
type startQueries struct {
	start, startFree, insertSiblings string
}

func (q *startQueries) write() {
	// word is a text of which a batch has few: its place in the list of words is in
	// the array, 0 for null.
	word := func(places string) string { return "({{arg.words}}::text[])[(" + places + "::smallint[])[s.ord]]" }
	start := func(free, only string) string {
		return `with ` + fence("{{arg.fence_shards}}", "{{arg.fence_epochs}}", free) + `, ` + nodes("{{arg.nodes}}", free) + `
	update {{schema}}.xxl_job_log l set state = {{arg.state}}::smallint,
		start_owner = ` + word("{{arg.owners}}") + `, start_token = case when {{arg.state}}::smallint = {{state.started}} then ({{arg.tokens}}::bigint[])[s.ord] end, executor_address = ` + word("{{arg.addresses}}") + `,
		inbox = ` + word("{{arg.inboxes}}") + `, trigger_time = case when {{arg.state}}::smallint = {{state.started}} then {{now}} end,
		taken_time = case when ({{arg.taken}}::boolean[])[s.ord] then {{now}} end,
		handle_time = case when {{arg.state}}::smallint <> {{state.started}} then {{now}} end,
		job_version = s.version, executor_handler = ` + word("{{arg.handlers}}") + `, executor_block_strategy = ` + word("{{arg.blocks}}") + `,
		executor_param = s.param, executor_fail_retry_count = ({{arg.retries}}::int[])[s.ord],
		executor_sharding_param = coalesce(` + word("{{arg.shardings}}") + `, l.executor_sharding_param), executor_boot_id = ` + word("{{arg.boots}}") + `,
		trigger_msg = ` + say(word("{{arg.messages}}")) + `, handle_msg = coalesce({{arg.reason}}::text, l.handle_msg)
	from (select unnest({{arg.ids}}::bigint[]) id, unnest({{arg.jobs}}::int[]) job_id, unnest({{arg.shards}}::smallint[]) shard, unnest({{arg.versions}}::bigint[]) version,
		unnest({{arg.params}}::text[]) param, unnest({{arg.ords}}::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence))` + only + `
	and l.id = s.id and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = {{state.planned}}
	and (i.trigger_status = 1 or l.trigger_type not in ({{born}}))
	and (coalesce(({{arg.shardings}}::smallint[])[s.ord], 0) = 0 or l.executor_sharding_param is null)
	and (coalesce(({{arg.inboxes}}::smallint[])[s.ord], 0) = 0 or ` + word("{{arg.inboxes}}") + ` in (select incarnation from nodes))
	and ({{arg.all}}::int = 0 or (select count(*) from nodes) = {{arg.all}}) and {{arg.lo}}::bigint <= {{arg.hi}}::bigint
	and (coalesce(({{arg.busy}}::smallint[])[s.ord], 0) = 0 or not exists (select from {{schema}}.xxl_job_log b where b.shard = s.shard and b.job_id = s.job_id
		and b.state = {{state.started}} and (b.executor_address = ` + word("{{arg.busy}}") + ` or b.executor_address = any({{arg.targets}}::text[])) and b.id between {{arg.open_lo}} and {{arg.open_hi}}))
	returning s.ord, {{run}}`
	}
	q.start = startArguments.in(start("", ""))
	q.startFree = startArguments.in(start("skip locked", `
		and s.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any({{arg.ids}}::bigint[]) and p.id between {{arg.lo}} and {{arg.hi}}
			and p.state + 0 = {{state.planned}} order by p.id for no key update skip locked))`))
	q.insertSiblings = siblingArgs.in(`insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, trigger_id, parent_id, attempt, trigger_type,
		scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, plan_epoch,
		job_version, executor_handler, executor_block_strategy, executor_address, executor_boot_id, start_owner, start_token, inbox,
		add_time, trigger_time, taken_time, trigger_msg, first_time, last_time, instants, reason)
	select {{run_id}}, l.job_id, l.shard, l.app_name, coalesce(l.trigger_id, l.id), l.parent_id, l.attempt, l.trigger_type,
		l.scheduled_time, {{state.started}}, s.sharding, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch,
		l.job_version, l.executor_handler, l.executor_block_strategy, s.address, s.boot, s.owner, l.start_token, s.inbox,
		{{now}}, l.trigger_time, case when s.mine then {{now}} end, l.trigger_msg, l.first_time, l.last_time, l.instants, l.reason
	from {{schema}}.xxl_job_log l, (select * from unnest({{arg.shardings}}::text[], {{arg.addresses}}::text[], {{arg.owners}}::text[], {{arg.inboxes}}::text[], {{arg.taken}}::boolean[], {{arg.boots}}::text[])
		with ordinality s(sharding, address, owner, inbox, mine, boot, ord) order by ord) s
	where l.id = {{arg.run}}
	returning {{run}}`)
}
