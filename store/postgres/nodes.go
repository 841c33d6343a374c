package postgres

// Nodes, and the cluster as one sees it.

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// Now returns the database's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.read(ctx, s.sql.clock.with().into(scanInto(&now)))
	if err != nil {
		return time.Time{}, failed(err, "read the clock")
	}
	s.learn(now)
	return now.UTC(), nil
}

// Join adds a node under a new incarnation. In lock mode it makes the node's lock
// connection.
func (s *Store) Join(ctx context.Context, n store.Node) (store.View, error) {
	if err := s.setMode(ctx); err != nil {
		return store.View{}, failed(err, "join")
	}
	view, err := s.beat(ctx, "join", n.Incarnation, n.ID, &n, n.Attached)
	if err != nil {
		return store.View{}, failed(err, "join")
	}
	s.wakeNodes()
	return view, nil
}

// Beat raises the node's counter and returns the cluster. In lock mode it goes
// over the lock connection, which it makes anew where that has broken, and asks
// again for locks that the node should have and has not.
func (s *Store) Beat(ctx context.Context, incarnation string, attached []store.Attachment) (store.View, error) {
	id := incarnation
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		id = id[:i]
	}
	if err := s.open(ctx); err != nil {
		return store.View{}, failed(err, "beat")
	}
	view, err := s.beat(ctx, "beat", incarnation, id, nil, attached)
	return view, failed(err, "beat")
}

// beat is that of a node, or where joins is given its first.
func (s *Store) beat(ctx context.Context, name, incarnation, id string, joins *store.Node, attached []store.Attachment) (store.View, error) {
	if err := ended(ctx); err != nil {
		return store.View{}, err
	}
	join := joins != nil
	if join {
		says := *joins
		says.UnknownZones, says.Version, says.ClockOffset = nil, "", 0
		s.joined.Store(incarnation, says)
	}
	can, told := s.joined.Load(incarnation)
	is, _ := can.(store.Node)
	if attached == nil && join {
		attached = []store.Attachment{} // null says that the node is resting
	}
	text, err := json.Marshal(plainAttached(attached))
	if err != nil {
		return store.View{}, err
	}
	routers, err := listText(is.Routers)
	if err != nil {
		return store.View{}, err
	}
	unknown, err := listText(is.UnknownZones)
	if err != nil {
		return store.View{}, err
	}
	v := viewReader{store: s}
	statementOf := func(l *lockSession) statement {
		pid, start, lockName := l.identity()
		return s.sql.beat.by(named{
			{"incarnation", incarnation}, {"node", id}, {"joins", join}, {"told", told}, {"zones", is.Zones}, {"knows", is.Knows}, {"unknown", unknown}, {"routers", routers}, {"version", is.Version}, {"clock", is.ClockOffset.Milliseconds()}, {"attached", string(text)}, {"lock_pid", pid},
			{"lock_start", start}, {"lock_name", lockName}, {"locks", s.locks()}, {"lock_class", s.lockClass},
			{"node_class", s.nodeClass},
		}).into(v.read)
	}
	if !s.locks() {
		err = s.one(ctx, bounds{name: name}, statementOf(nil))
	} else {
		err = s.onSession(ctx, name, incarnation, statementOf)
	}
	if err != nil {
		return store.View{}, err
	}
	s.learn(v.view.Now)
	s.remember(&v)
	if s.locks() {
		s.relock(ctx, incarnation, v.view.Shards)
	}
	if v.revived {
		s.wakeNodes()
	}
	return v.view, nil
}

// plainAttached are executors with texts as the store keeps them. In JSON a NUL is an escape, which
// a jsonb cannot have.
func plainAttached(list []store.Attachment) []store.Attachment {
	list = slices.Clone(list)
	for i := range list {
		list[i].App, list[i].Handlers = store.PlainText(list[i].App), plainTexts(list[i].Handlers)
	}
	return list
}

// View returns the cluster to who is no part of it.
func (s *Store) View(ctx context.Context) (store.View, error) {
	v := viewReader{store: s}
	err := s.read(ctx, s.sql.view.by(named{
		{"locks", s.locks()}, {"lock_class", s.lockClass}, {"node_class", s.nodeClass}, {"incarnation", ""},
	}).into(v.read))
	if err != nil {
		return store.View{}, failed(err, "read the cluster")
	}
	s.learn(v.view.Now)
	return v.view, nil
}

// viewReader reads the one row of a beat.
type viewReader struct {
	store   *Store
	view    store.View
	revived bool
}

func (v *viewReader) read(rows pgx.Rows) (err error) {
	var now, serverStart time.Time
	var names, ids, owners, attached, unknown, routers, versions []string
	var beats, joined, epochs, clocks []int64
	var left, away, failing, zones, free []bool
	var knows []int32
	var shards []int16
	if err := rows.Scan(&now, &serverStart, &v.revived, &names, &ids, &beats, &left, &away, &joined, &attached, &failing, &zones, &knows, &unknown, &routers, &versions, &clocks, &shards, &owners, &epochs, &free); err != nil {
		return err
	}
	// A standby that was promoted was started at a time of its own.
	v.view = store.View{Now: now.UTC(), Server: serverStart.UTC().Format(time.RFC3339Nano)}
	for i, name := range names {
		n := store.Node{ID: ids[i], Incarnation: name, Beats: beats[i], Left: left[i], Failing: failing[i], Away: away[i], Zones: zones[i], Knows: int(knows[i]), Joined: fromMilli(joined[i]),
			Version: versions[i], ClockOffset: time.Duration(clocks[i]) * time.Millisecond}
		n.Resting = attached[i] == "null"
		if n.Routers, err = listOf(routers[i]); err != nil {
			return err
		}
		if n.UnknownZones, err = listOf(unknown[i]); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(attached[i]), &n.Attached); err != nil {
			return err
		}
		if len(n.Attached) == 0 {
			n.Attached = nil
		}
		v.view.Nodes = append(v.view.Nodes, n)
	}
	for i, id := range shards {
		v.view.Shards = append(v.view.Shards, store.Shard{ID: int(id), Owner: owners[i], Epoch: epochs[i], Free: free[i]})
	}
	return nil
}

// NoteUnknownZones has the next beat store of which zones a node has no data.
func (s *Store) NoteUnknownZones(ctx context.Context, incarnation string, zones []string) error {
	if can, joined := s.joined.Load(incarnation); joined {
		is := can.(store.Node)
		is.UnknownZones = slices.Clone(zones)
		s.joined.Store(incarnation, is)
	}
	return ended(ctx)
}

// NoteProcess has the next beat store what a node says of its process.
func (s *Store) NoteProcess(ctx context.Context, incarnation string, p store.Process) error {
	if can, joined := s.joined.Load(incarnation); joined {
		is := can.(store.Node)
		is.Version, is.ClockOffset = store.Shown(p.Version, store.MostVersion), p.ClockOffset
		s.joined.Store(incarnation, is)
	}
	return ended(ctx)
}

// SetFailing stores whether the node's claims or starts fail. In lock mode that goes over
// the lock connection: the pool may be what they fail for.
func (s *Store) SetFailing(ctx context.Context, incarnation string, failing bool) error {
	changed := false
	err := s.besidePool(ctx, bounds{name: "set_failing"}, incarnation, s.sql.setFailing.with(incarnation, failing).into(func(pgx.Rows) error {
		changed = true
		return nil
	}))
	if err == nil && changed {
		s.wakeNodes()
	}
	return failed(err, "set failing")
}

// hintPatience is how long a node that leaves tries to send a hint, with the wait for the
// pool.
const hintPatience = time.Second

// Leave marks the node as left and releases its shards, and with them its locks.
func (s *Store) Leave(ctx context.Context, incarnation string) error {
	err := s.inTx(ctx, bounds{name: "leave"}, func(t *tx) error {
		return t.do(ctx, s.sql.lockNode.with(incarnation),
			s.sql.leaveNode.with(incarnation),
			s.sql.leaveShards.with(incarnation))
	})
	if err != nil {
		return failed(err, "leave")
	}
	s.joined.Delete(incarnation)
	s.endSession(incarnation)
	s.wakeNodes()
	if s.locks() && !s.alone() {
		// At once, for the process may end before the hint that waits its turn is sent;
		// but a hint is not worth a long wait for a pool that the host uses up.
		hint, cancel := context.WithTimeout(ctx, hintPatience)
		defer cancel()
		_ = s.notify(hint, []string{string(hintNodes)})
	}
	return nil
}

// Bury marks a silent node as left and deletes it once its runs are settled. A
// start at the node holds its row: it is either seen here, or finds the node gone.
func (s *Store) Bury(ctx context.Context, incarnation string, beats int64) error {
	changed := 0
	count := func(pgx.Rows) error { changed++; return nil }
	lo, hi := wideRange()
	err := s.inTx(ctx, bounds{name: "bury"}, func(t *tx) error {
		changed = 0
		return t.do(ctx, s.sql.lockNode.with(incarnation),
			s.sql.buryLeft.with(incarnation, beats).into(count),
			s.sql.buryNode.by(named{
				{"incarnation", incarnation}, {"beats", beats}, {"address", store.LocalAddress(incarnation)},
				{"lo", lo}, {"hi", hi},
			}).into(count),
			s.sql.dropLists.with(incarnation))
	})
	if err == nil && changed > 0 {
		s.wakeNodes()
	}
	return failed(err, "bury a node")
}

// markSetting is where the mark of the clock is stored, in milliseconds since 1970.
const markSetting = "clock_mark"

// ClockMark returns how late it was by the database's clock when that was last trusted.
func (s *Store) ClockMark(ctx context.Context) (time.Time, error) {
	var text string
	if err := s.read(ctx, s.sql.setting.with(markSetting).into(scanInto(&text))); err != nil {
		return time.Time{}, failed(err, "read the mark of the clock")
	}
	milli, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, nil // none, or nothing that this version has written: it is set anew
	}
	return fromMilli(milli), nil
}

// SetClockMark sets the mark.
func (s *Store) SetClockMark(ctx context.Context, mark time.Time) error {
	err := s.one(ctx, bounds{name: "set_clock_mark"}, s.sql.setMark.with(markSetting, strconv.FormatInt(mark.UnixMilli(), 10)))
	return failed(err, "set the mark of the clock")
}

// nodeQueries are the statements of this file.
type nodeQueries struct {
	setMark, clock, beat, view, setFailing, lockNode, leaveNode, leaveShards, buryLeft, buryNode query
}

func (q *nodeQueries) define(sql template) {
	q.clock = sql(`select clock_timestamp()`)
	q.setMark = sql(`insert into {{schema}}.xxl_job_setting (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value`)
	// The statement sees the rows as they were before its own write, so the node's
	// own row comes from the write.
	q.beat = sql(`with was as (select has_left or attached <> {{arg.attached}}::text::jsonb news from {{schema}}.xxl_job_node where incarnation = {{arg.incarnation}}),
	mine as (
		insert into {{schema}}.xxl_job_node as n (incarnation, node_id, beats, has_left, joined, attached, lock_pid, lock_start, lock_name, zones, knows, unknown_zones, routers, version, clock_offset)
		values ({{arg.incarnation}}, {{arg.node}}, 1, false, case when {{arg.joins}}::boolean then {{now}} end,
			{{arg.attached}}::text::jsonb, {{arg.lock_pid}}, {{arg.lock_start}}, {{arg.lock_name}},
			case when {{arg.told}}::boolean then {{arg.zones}}::boolean end, case when {{arg.told}}::boolean then {{arg.knows}}::int end,
			case when {{arg.told}}::boolean then {{arg.unknown}}::text end, case when {{arg.told}}::boolean then {{arg.routers}}::text end,
			case when {{arg.told}}::boolean then {{arg.version}}::text end, case when {{arg.told}}::boolean then {{arg.clock}}::bigint end)
		on conflict (incarnation) do update set beats = n.beats + 1, has_left = false, attached = excluded.attached,
			joined = case when {{arg.joins}}::boolean then {{now}} else n.joined end,
				node_id = case when {{arg.joins}}::boolean then {{arg.node}} else n.node_id end,
			zones = case when {{arg.told}}::boolean then {{arg.zones}}::boolean else n.zones end,
			knows = case when {{arg.told}}::boolean then {{arg.knows}}::int else n.knows end,
			unknown_zones = case when {{arg.told}}::boolean then {{arg.unknown}}::text else n.unknown_zones end,
			routers = case when {{arg.told}}::boolean then {{arg.routers}}::text else n.routers end,
			version = case when {{arg.told}}::boolean then {{arg.version}}::text else n.version end,
			clock_offset = case when {{arg.told}}::boolean then {{arg.clock}}::bigint else n.clock_offset end,
			lock_pid = excluded.lock_pid, lock_start = excluded.lock_start, lock_name = excluded.lock_name
		returning *),
	nodes as (select * from mine union all select n.* from {{schema}}.xxl_job_node n where n.incarnation <> {{arg.incarnation}}),
` + clusterOf(`coalesce((select news from was), true)`)).saying()
	q.view = sql(`with nodes as (select n.* from {{schema}}.xxl_job_node n),
` + clusterOf(`false`))
	q.setFailing = sql(`update {{schema}}.xxl_job_node set failing = $2 where incarnation = $1 and failing <> $2 returning 1`)
	q.lockNode = sql(`select 1 from {{schema}}.xxl_job_node where incarnation = $1 for update`)
	q.leaveNode = sql(`update {{schema}}.xxl_job_node set has_left = true where incarnation = $1`)
	q.leaveShards = sql(`update {{schema}}.xxl_job_lock set owner = '' where owner = $1 and owner <> ''`)
	q.buryLeft = sql(`update {{schema}}.xxl_job_node set has_left = true where incarnation = $1 and beats = $2 and not has_left returning 1`)
	q.buryNode = sql(`delete from {{schema}}.xxl_job_node where incarnation = {{arg.incarnation}} and beats = {{arg.beats}}
	and not exists (select from {{schema}}.xxl_job_log l where l.shard in (select shard from {{schema}}.xxl_job_lock)
		and l.state in ({{state.started}}, {{state.dispatched}})
		and (l.start_owner = {{arg.incarnation}} or l.executor_address = {{arg.address}}) and l.id between {{arg.lo}} and {{arg.hi}})
	returning 1`)
}

// clusterOf is the rest of a statement that has the table nodes: it returns the cluster, and
// whether there is news of the node that asks.
func clusterOf(news string) string {
	return `	locks as (select p.classid::bigint class, p.objid::bigint id from pg_catalog.pg_locks p where {{arg.locks}}::boolean and p.locktype = 'advisory'
		and p.objsubid = 2 and p.granted
		and p.classid::bigint in ({{arg.lock_class}}::int::bigint & 4294967295, {{arg.node_class}}::int::bigint & 4294967295)
		and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())),
	shards as (select k.shard, k.owner, k.epoch,
		k.owner = '' or n.incarnation is null or n.has_left
			or ({{arg.locks}}::boolean and not exists (select from locks p where p.class = {{arg.lock_class}}::int::bigint & 4294967295 and p.id = k.shard)) free
		from {{schema}}.xxl_job_lock k left join nodes n on n.incarnation = k.owner)
	select clock_timestamp(), pg_catalog.pg_postmaster_start_time(), ` + news + `, n.*, s.* from
	(select coalesce(array_agg(incarnation order by incarnation), '{}'), coalesce(array_agg(node_id order by incarnation), '{}'),
		coalesce(array_agg(beats order by incarnation), '{}'), coalesce(array_agg(has_left order by incarnation), '{}'),
		coalesce(array_agg({{arg.locks}}::boolean and not has_left and incarnation <> {{arg.incarnation}} and not exists (select from locks p
			where p.class = {{arg.node_class}}::int::bigint & 4294967295 and p.id = pg_catalog.hashtext(incarnation)::bigint & 4294967295)
				order by incarnation), '{}'),
		coalesce(array_agg(coalesce(` + milliseconds("joined") + `, 0) order by incarnation), '{}'),
		coalesce(array_agg(attached::text order by incarnation), '{}'), coalesce(array_agg(failing order by incarnation), '{}'),
		coalesce(array_agg(zones is true order by incarnation), '{}'), coalesce(array_agg(coalesce(knows, 0) order by incarnation), '{}'),
		coalesce(array_agg(coalesce(unknown_zones, '') order by incarnation), '{}'), coalesce(array_agg(coalesce(routers, '') order by incarnation), '{}'),
		coalesce(array_agg(coalesce(version, '') order by incarnation), '{}'), coalesce(array_agg(coalesce(clock_offset, 0) order by incarnation), '{}') from nodes) n,
	(select coalesce(array_agg(shard order by shard), '{}'), coalesce(array_agg(owner order by shard), '{}'),
		coalesce(array_agg(epoch order by shard), '{}'), coalesce(array_agg(free order by shard), '{}') from shards) s`
}
