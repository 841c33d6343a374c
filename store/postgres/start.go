package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/xxljob/xxljob/store"
)

// startBatch is how many runs one statement starts at most.
const startBatch = 1000

// Start marks planned runs started or refused. Starts that may depend on each
// other go in statements of their own, one after the other; all others are one.
func (s *Store) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	dst, answers := extended(dst, len(starts))
	for _, g := range s.groupStarts(starts) {
		if err := s.startGroup(ctx, starts, g, answers); err != nil {
			return nil, failed(err, "start %d runs", len(starts))
		}
	}
	return dst, nil
}

// startGroup starts a group and fills in the answers.
func (s *Store) startGroup(ctx context.Context, starts []store.Start, g startGroup, answers []store.Started) error {
	ids := make([]int64, len(g.places))
	for k, i := range g.places {
		ids[k] = starts[i].RunID
	}
	var done arming
	start := func(free bool) error {
		return s.inDay(ids, func(in inDay) (err error) {
			done, err = s.startBy(ctx, startWay{in, free}, starts, g, answers)
			return err
		})
	}
	careful := s.careful()
	err := start(careful)
	if lockedOut(err) && !careful {
		s.beCareful()
		err = start(true)
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
		for k := range answers[i].Covered {
			done.mark(&answers[i].Covered[k])
		}
		s.wakeEnded(len(answers[i].Covered))
	}
	s.tell(done)
	for _, i := range g.places {
		done.mark(&answers[i].Run)
	}
	s.tellStarted(starts, g.places, answers)
	if len(left) == 0 {
		return nil
	}
	if err := s.explain(ctx, starts, left, answers); err != nil {
		return err
	}
	for _, i := range left {
		if a := &answers[i]; !g.refused && (a.Status != store.StartGone || a.Run.State.Ended()) {
			s.serials.end(starts[i].RunID) // others that are gone were started before
		}
	}
	return nil
}

// startWay is how a statement is sent.
type startWay struct {
	inDay
	free bool // it passes by what others have locked
}

func (s *Store) startBy(ctx context.Context, way startWay, starts []store.Start, g startGroup, answers []store.Started) (arming, error) {
	var done arming
	for _, i := range g.places {
		answers[i] = store.Started{}
	}
	if !g.refused && slices.ContainsFunc(g.places, func(i int) bool { return starts[i].Serial }) {
		// Only the owner's process gets past the fence, so it is enough that it
		// takes turns.
		<-s.serials.turn.ask()
		defer s.serials.turn.done()
	}
	st := s.startStatement(way, starts, g, answers)
	b := bounds{name: "start", lock: quickPatience}
	if !g.refused && g.targets == nil && !g.covers {
		return done, s.one(ctx, b, st)
	}
	i := g.places[0]
	var after following
	var alarms alarming
	err := s.withPartitions(ctx, func() error {
		return s.inTx(ctx, b, func(t *tx) error {
			answers[i] = store.Started{}
			if g.refused || g.covers { // it ends planned runs: jobs are locked before those, and the first run of its trigger before them
				job := []int64{starts[i].JobID}
				var held []int64
				if err := t.do(ctx, s.heldFirst(starts[i].RunID).into(readIDs(&held)), s.sql.heldJobs.with(job).into(readIDs(&held)), s.sql.lockIdleFree.with(job)); err != nil || len(held) > 0 {
					return err
				}
			}
			if err := t.do(ctx, st); err != nil || answers[i].Run.ID == 0 {
				return err
			}
			if g.refused {
				t.count(answers[i].Run)
				var err error
				if after, err = s.follow(ctx, t, []*store.Run{&answers[i].Run}, nil); err != nil {
					return err
				}
				alarms = s.alarms()
				alarms.ended(&after, answers[i].Run)
				if err := alarms.insert(ctx, t); err != nil {
					return err
				}
				done, err = s.arm(ctx, t, []runEnd{after.end(&answers[i].Run)}, nil)
				return err
			}
			if g.covers {
				covered := &answers[i].Covered
				if err := t.do(ctx, s.coverRuns(&starts[i], covered)); err != nil {
					return err
				}
				slices.SortFunc(*covered, func(a, b store.Run) int { return cmp.Compare(a.ID, b.ID) })
				t.count(*covered...)
				alarms = s.alarms()
				alarms.ended(nil, *covered...)
				if err := alarms.insert(ctx, t); err != nil {
					return err
				}
				var err error
				done, err = s.arm(ctx, t, endedOf(*covered), nil)
				return err
			}
			if len(g.targets) < 2 {
				return nil
			}
			return t.do(ctx, s.insertSiblings(&starts[i], &answers[i]))
		})
	})
	if err == nil {
		s.tellFollowing(&after)
		alarms.tell()
	}
	return done, err
}

// startStatement is the narrowest statement that does for the group.
func (s *Store) startStatement(way startWay, starts []store.Start, g startGroup, answers []store.Started) statement {
	looks := s.countStarts(starts, g)
	if g.own && !slices.Contains(looks, true) {
		return s.startOwnStatement(way, starts, g, answers)
	}
	q, free := s.sql.start, s.sql.startFree
	if g.brief {
		q, free = s.sql.startBrief, s.sql.startBriefFree
	}
	if way.free {
		q = free
	}
	read := readStarted(g, answers)
	if g.brief {
		read = readBriefly(starts, g, answers)
	}
	return way.of(q).by(s.startArgs(starts, g, looks)).into(read)
}

// countStarts counts the starts of a group, and says of each whether it has to look for other runs of
// its job: it may not start beside one at the same attached address, and it is not known that
// there is none.
func (s *Store) countStarts(starts []store.Start, g startGroup) (looks []bool) {
	if g.refused {
		return nil
	}
	looks = make([]bool, len(g.places))
	for k, i := range g.places {
		st := &starts[i]
		free := s.serials.begin(st)
		looks[k] = st.Serial && !free && slices.ContainsFunc(append([]string{st.Address}, g.targets...), isAttached)
	}
	return looks
}

// readStarted takes in the runs of a group.
func readStarted(g startGroup, answers []store.Started) result {
	var row runRow
	var ord int
	return func(rows pgx.Rows) error {
		run, err := row.scan(rows, &ord)
		if err == nil {
			answers[g.places[ord-1]].Run = run
		}
		return err
	}
}

// readBriefly takes in what is not known of the runs of a group.
func readBriefly(starts []store.Start, g startGroup, answers []store.Started) result {
	var ord int
	var epoch pgtype.Int8
	var started pgtype.Timestamptz
	var sharding, message, handle repeated
	var b store.Run
	dest := []any{&ord, &epoch, &sharding, &started, &b.AlarmStatus, &message, &handle}
	return func(rows pgx.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		b.PlanEpoch, b.Sharding, b.Started = epoch.Int64, parseSharding(sharding.text), stamp(started)
		i := g.places[ord-1]
		b.TriggerMsg, b.HandleMsg = message.text, handle.text
		if b.TriggerMsg == "" {
			b.TriggerMsg = starts[i].Msg // it is in routed
		}
		answers[i].Run = starts[i].Started(&b)
		return nil
	}
}

// coverRuns discards the runs whose place a start takes.
func (s *Store) coverRuns(st *store.Start, covered *[]store.Run) statement {
	lo, hi := rangeOf(st.Covers)
	return s.sql.coverRuns.by(named{
		{"runs", st.Covers}, {"job", st.JobID}, {"lo", lo}, {"hi", hi}, {"message", nonempty(st.HandleMsg)},
	}).into(readRuns(covered))
}

// insertSiblings inserts the parts of a broadcast behind the first.
func (s *Store) insertSiblings(st *store.Start, answer *store.Started) statement {
	var sharding, addresses []string
	var owners, inboxes, boots []*string
	var mine []bool
	for i, address := range st.Targets[1:] {
		boot := ""
		if i+1 < len(st.TargetBoots) {
			boot = st.TargetBoots[i+1]
		}
		boots = append(boots, nonempty(boot))
		sharding = append(sharding, store.Sharding{Index: i + 1, Total: len(st.Targets)}.String())
		addresses = append(addresses, address)
		owners = append(owners, nonempty(ownerColumn(st.Owner, address)))
		inboxes = append(inboxes, nonempty(inboxColumn(st.Owner, address)))
		mine = append(mine, isAt(st.Owner, address))
	}
	answer.Siblings = nil
	return s.sql.insertSiblings.by(named{
		{"run", st.RunID}, {"shardings", sharding}, {"addresses", addresses}, {"owners", owners}, {"inboxes", inboxes},
		{"taken", mine}, {"boots", sparse(boots)},
	}).into(readRuns(&answer.Siblings))
}

// inboxColumn is the incarnation that a run is handed over to; nothing, for null,
// where the address is not an attached executor's, or is the owner's own.
func inboxColumn(owner, address string) string {
	if incarnation, attached := store.LocalIncarnation(address); attached && incarnation != owner {
		return incarnation
	}
	return ""
}

// startArgs are the arguments of a start. looks are those of countStarts.
func (s *Store) startArgs(starts []store.Start, g startGroup, looks []bool) named {
	n := len(g.places)
	ids, jobs, in := make([]int64, n), make([]int64, n), make([]int16, n)
	versions, tokens, params, retries := make([]int64, n), make([]int64, n), make([]*string, n), make([]int32, n)
	owners, addresses, inboxes, mine := make([]int16, n), make([]int16, n), make([]int16, n), make([]bool, n)
	handlers, blocks, shardings, messages, busy, boots := make([]int16, n), make([]int16, n), make([]int16, n), make([]int16, n), make([]int16, n), make([]int16, n)
	after, instants := make([]int64, n), make([]int64, n)
	var words words
	var shards []store.Shard
	seen := map[store.Shard]bool{}
	var there, targets []string
	for k, i := range g.places {
		st := &starts[i]
		if sh := (store.Shard{ID: st.Shard, Epoch: st.Epoch}); !seen[sh] {
			seen[sh] = true
			shards = append(shards, sh)
		}
		ids[k], jobs[k], in[k], versions[k] = st.RunID, st.JobID, int16(st.Shard), st.JobVersion
		handlers[k], blocks[k], params[k] = words.place(st.Handler), words.place(st.Block), nonempty(st.Param)
		retries[k], messages[k] = int32(st.Retries), words.place(st.Msg)
		if g.refused {
			continue
		}
		if st.AfterRetries {
			after[k], instants[k] = st.TriggerID, milli(stored(st.Instant))
		}
		tokens[k], addresses[k] = st.Token, words.place(st.Address)
		owners[k], inboxes[k] = words.place(ownerColumn(st.Owner, st.Address)), words.place(inboxColumn(st.Owner, st.Address))
		mine[k], boots[k] = isAt(st.Owner, st.Address), words.place(st.BootID)
		for _, address := range append([]string{st.Address}, g.targets...) {
			if inc := inboxColumn(st.Owner, address); inc != "" && !slices.Contains(there, inc) {
				there = append(there, inc)
			}
			if looks[k] && isAttached(address) {
				busy[k], targets = words.place(address), g.targets
			}
		}
		if len(st.Targets) > 0 {
			shardings[k] = words.place(store.Sharding{Index: 0, Total: len(st.Targets)}.String())
		}
	}
	ids16, epochs := fenceArgs(shards)
	lo, hi := rangeOf(ids)
	_, openHi := s.openRange()
	openLo := s.floors.ofStarted(ids)
	waitLo, waitHi := s.waitRange(starts, g)
	state, reason := store.StateStarted, "" // with Covers it is theirs
	if g.refused {                          // alone in its group
		state, reason = store.StateRefused, starts[g.places[0]].HandleMsg
	}
	all := 0 // of a broadcast, every node has to be there
	if len(g.targets) > 0 {
		all = len(there)
	}
	return named{
		{"shards", ids16}, {"epochs", epochs}, {"nodes", there}, {"state", int16(state)},
		{"words", words.list}, {"owners", sparse(owners)}, {"tokens", tokens}, {"addresses", addresses}, {"inboxes", sparse(inboxes)}, {"taken", sparse(mine)},
		{"handlers", handlers}, {"blocks", blocks}, {"retries", retries}, {"shardings", sparse(shardings)}, {"boots", sparse(boots)},
		{"messages", messages}, {"handle_msg", nonempty(reason)},
		{"runs", ids}, {"jobs", jobs}, {"run_shards", in}, {"versions", versions}, {"params", sparse(params)}, {"places", upTo(n)},
		{"node_count", all}, {"lo", lo}, {"hi", hi},
		{"busy", sparse(busy)}, {"targets", attachedOnly(targets)}, {"open_lo", openLo}, {"open_hi", openHi}, {"wait_lo", waitLo}, {"wait_hi", waitHi},
		{"after", sparse(after)}, {"instants", sparse(instants)},
	}
}

// waitRange holds the ids of what waits to be tried again, where a start has to wait for it.
func (s *Store) waitRange(starts []store.Start, g startGroup) (lo, hi int64) {
	if !slices.ContainsFunc(g.places, func(i int) bool { return starts[i].AfterRetries }) {
		return 1, 0 // no partition is looked into
	}
	_, hi = s.openRange()
	return s.floors.ofWaiting(), hi
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
	_, attached := store.LocalIncarnation(address)
	return attached
}

const (
	// mayRun is whether a job i, by whether it is stopped, may start a run l of its schedule,
	// or a retry of one.
	mayRun = `(i.trigger_status = {{status.enabled}} or l.trigger_type not in ({{born}}) and (l.born is null or i.stop_reason = '` + reasonManual + `'))`
	// isRetry is the condition of the index of runs w that wait to be tried again.
	isRetry = `w.state = {{state.planned}} and w.trigger_type = 'RETRY'`
	// retrying says whether there is any such run.
	retrying = `retrying as materialized (
		select exists (select from {{schema}}.xxl_job_log w where ` + isRetry + ` and w.id between {{arg.wait_lo}} and {{arg.wait_hi}}) any_retry)`
	// noEarlierRetry is whether none of them is in the way of a start s.
	noEarlierRetry = `(coalesce(({{arg.after}}::bigint[])[s.ord], 0) = 0 or not (select any_retry from retrying)
		or not exists (select from {{schema}}.xxl_job_log w where w.job_id = s.job_id and ` + isRetry + ` and w.last_time <= ({{arg.instants}}::bigint[])[s.ord]
			and (w.last_time < ({{arg.instants}}::bigint[])[s.ord] or w.trigger_id < ({{arg.after}}::bigint[])[s.ord])
			and w.id between {{arg.wait_lo}} and {{arg.wait_hi}}))`
	// freeToStart are the planned ones of the runs that nobody has locked.
	freeToStart = `any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any({{arg.runs}}::bigint[]) and p.id between {{arg.lo}} and {{arg.hi}}
			and p.state + 0 = {{state.planned}} order by p.id for no key update skip locked))`
)

// startGroup are starts, by their places, that fit into one statement.
type startGroup struct {
	places  []int
	refused bool
	targets []string // of the one broadcast that it is
	covers  bool     // it is one start that takes the place of other runs
	brief   bool     // all of its runs are known
	own     bool     // and all go to the owner's own executors: see isOwn
}

// groupStarts keeps the order among starts of one run, and among starts of one
// serial job. A group is of starts that follow each other.
func (s *Store) groupStarts(starts []store.Start) []startGroup {
	var groups []startGroup
	plain := -1 // the group that plain starts are added to
	all := make([]int, len(starts))
	seen := s.grouping.take() // runs, below zero, and jobs of the group; its shards, since a fence has one epoch for each
	defer s.grouping.giveBack(seen)
	for i := range starts {
		st := &starts[i]
		refused := st.State == store.StateRefused
		single := len(st.Targets) > 0 || len(st.Covers) > 0 || refused
		epoch, has := seen.epochs[st.Shard]
		_, again := seen.ids[-st.RunID]
		_, busy := seen.ids[st.JobID]
		clash := again || st.Serial && busy || has && epoch != st.Epoch
		if plain < 0 || clash || single || len(groups[plain].places) == startBatch {
			groups = append(groups, startGroup{places: all[i:i], refused: refused, covers: len(st.Covers) > 0 && !refused, brief: !single, own: !single})
			seen.clear()
			plain = len(groups) - 1
		}
		g := &groups[plain]
		g.places = append(g.places, i)
		g.brief = g.brief && st.Known != nil
		g.own = g.own && g.brief && isOwn(st) && st.Owner == starts[g.places[0]].Owner
		seen.ids[-st.RunID], seen.ids[st.JobID] = i, i
		seen.epochs[st.Shard] = st.Epoch
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

// Starts of runs that the caller knows, and that go to its own executors, as most do: the start
// is the taking, no other node has to be there, and what is the same for all of them is said
// once. What decides about a start is what decides about others: see define.

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

// startQueries are the statements of this file.
type startQueries struct {
	start, startFree, startBrief, startBriefFree, insertSiblings, coverRuns query
	startOwn, startOwnFree                                                  query
}

func (q *startQueries) define(sql template) {
	// word is a text of which a batch has few: its place in the list of words is in
	// the array, 0 for null.
	word := func(places string) string {
		return "({{arg.words}}::text[])[(" + argument(places) + "::smallint[])[s.ord]]"
	}
	// There are two statements that start runs: this one for all, and own, further down, for starts
	// that are all as isOwn says. Whatever decides whether a run may be started stands in both, in the
	// same words, but for what isOwn makes needless: nodes, shardings, inboxes, targets, busy. Whoever
	// changes a condition, or a column that is set, in the one changes it in the other.
	start := func(free, only, returning string) string {
		return `with ` + fence(free) + `, ` + nodes(free) + `, ` + retrying + `
	update {{schema}}.xxl_job_log l set state = {{arg.state}}::smallint,
		start_owner = ` + word("owners") + `, start_token = case when {{arg.state}}::smallint = {{state.started}} then ({{arg.tokens}}::bigint[])[s.ord] end,
		executor_address = ` + word("addresses") + `,
		inbox = ` + word("inboxes") + `, trigger_time = case when {{arg.state}}::smallint = {{state.started}} then {{now}} end,
		taken_time = case when ({{arg.taken}}::boolean[])[s.ord] then {{now}} end,
		handle_time = case when {{arg.state}}::smallint <> {{state.started}} then {{now}} end,
		job_version = s.version, executor_handler = ` + word("handlers") + `, executor_block_strategy = ` + word("blocks") + `,
		executor_param = s.param, executor_fail_retry_count = ({{arg.retries}}::int[])[s.ord],
		executor_sharding_param = coalesce(` + word("shardings") + `, l.executor_sharding_param), executor_boot_id = ` + word("boots") + `,
		trigger_msg = ` + say(word("messages")) + `, routed = null, handle_msg = coalesce({{arg.handle_msg}}::text, l.handle_msg)
	from (select unnest({{arg.runs}}::bigint[]) id, unnest({{arg.jobs}}::int[]) job_id, unnest({{arg.run_shards}}::smallint[]) shard,
		unnest({{arg.versions}}::bigint[]) version, unnest({{arg.params}}::text[]) param, unnest({{arg.places}}::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence))` + only + `
	and ` + runIs("s.id") + ` and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = {{state.planned}}
	and ` + mayRun + `
	and (coalesce(({{arg.shardings}}::smallint[])[s.ord], 0) = 0 or l.executor_sharding_param is null)
	and (coalesce(({{arg.inboxes}}::smallint[])[s.ord], 0) = 0 or ` + word("inboxes") + ` in (select incarnation from nodes))
	and ({{arg.node_count}}::int = 0 or (select count(*) from nodes) = {{arg.node_count}}) and {{arg.lo}}::bigint <= {{arg.hi}}::bigint
	and (coalesce(({{arg.busy}}::smallint[])[s.ord], 0) = 0 or not exists (select from {{schema}}.xxl_job_log b where b.shard = s.shard and b.job_id = s.job_id
		and b.state = {{state.started}} and (b.executor_address = ` + word("busy") + ` or b.executor_address = any({{arg.targets}}::text[]))
			and b.id between {{arg.open_lo}} and {{arg.open_hi}}))
	and ` + noEarlierRetry + `
	returning ` + returning
	}
	only := `
		and s.id = ` + freeToStart
	const all, brief = `s.ord, {{run}}`, `s.ord, l.plan_epoch, l.executor_sharding_param, l.trigger_time, l.alarm_status, l.trigger_msg, l.handle_msg`
	q.start, q.startFree = sql(start("", "", all)).saying(), sql(start("skip locked", only, all)).saying()
	q.startBrief, q.startBriefFree = sql(start("", "", brief)).saying(), sql(start("skip locked", only, brief)).saying()
	part := assigned{
		{"id", `{{run_id}}`},
		{"job_id", `l.job_id`},
		{"shard", `l.shard`},
		{"app_name", `l.app_name`},
		{"trigger_id", `coalesce(l.trigger_id, l.id)`},
		{"parent_id", `l.parent_id`},
		{"depth", `l.depth`},
		{"business_time", `l.business_time`},
		{"instant_time", `l.instant_time`},
		{"attempt", `l.attempt`},
		{"trigger_type", `l.trigger_type`},
		{"scheduled_time", `l.scheduled_time`},
		{"state", `{{state.started}}`},
		{"executor_sharding_param", `s.sharding`},
		{"executor_param", `l.executor_param`},
		{"param_set", `l.param_set`},
		{"address_list", `l.address_list`},
		{"executor_fail_retry_count", `l.executor_fail_retry_count`},
		{"retries_set", `l.retries_set`},
		{"born", `l.born`},
		{"reruns", `l.reruns`},
		{"snoozes", `l.snoozes`},
		{"trace", `l.trace`},
		{"plan_epoch", `l.plan_epoch`},
		{"job_version", `l.job_version`},
		{"executor_handler", `l.executor_handler`},
		{"executor_block_strategy", `l.executor_block_strategy`},
		{"executor_address", `s.address`},
		{"executor_boot_id", `s.boot`},
		{"start_owner", `s.owner`},
		{"start_token", `l.start_token`},
		{"inbox", `s.inbox`},
		{"add_time", `{{now}}`},
		{"trigger_time", `l.trigger_time`},
		{"taken_time", `case when s.mine then {{now}} end`},
		{"trigger_msg", `l.trigger_msg`},
		{"first_time", `l.first_time`},
		{"last_time", `l.last_time`},
		{"instants", `l.instants`},
		{"reason", `l.reason`},
	}
	q.coverRuns = sql(`update {{schema}}.xxl_job_log l set state = {{state.discarded}}, handle_time = {{now}},
		handle_msg = {{arg.message}}::text, trigger_msg = ` + say(`{{arg.message}}::text`) + `
	where l.id = ` + freeToStart + ` and l.id between {{arg.lo}} and {{arg.hi}} and l.job_id + 0 = {{arg.job}}::bigint
	returning {{run}}`).saying()
	q.insertSiblings = sql(`insert into {{schema}}.xxl_job_log as l (` + part.columns() + `)
	select ` + part.values() + `
	from {{schema}}.xxl_job_log l, (select * from unnest({{arg.shardings}}::text[], {{arg.addresses}}::text[],
		{{arg.owners}}::text[], {{arg.inboxes}}::text[], {{arg.taken}}::boolean[], {{arg.boots}}::text[])
		with ordinality s(sharding, address, owner, inbox, mine, boot, ord) order by ord) s
	where l.id = {{arg.run}}
	returning {{run}}`).saying()

	const message = `({{arg.words}}::text[])[({{arg.messages}}::smallint[])[s.ord]]`
	const routed = `case when coalesce(l.trigger_msg, '') = '' then ({{arg.words}}::text[])[({{arg.routed}}::smallint[])[s.ord]] end`
	// own is start for the owner's own executors, and says the same in fewer words: see there.
	own := func(free, only string) string {
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
	q.startOwn = sql(own("", "")).saying()
	q.startOwnFree = sql(own("skip locked", ` and s.id = `+freeToStart)).saying()
}
