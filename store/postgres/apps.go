package postgres

// Executor apps: their groups, and the addresses that their executors registered.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/xxljob/xxljob/store"
)

// SaveGroup inserts or replaces the group.
func (s *Store) SaveGroup(ctx context.Context, g store.Group) error {
	if err := store.CheckTexts("group", g); err != nil {
		return failed(err, "save group")
	}
	kind := 0
	if g.Manual {
		kind = 1
	}
	addresses := append([]string{}, g.Addresses...)
	err := s.inTx(ctx, bounds{name: "save_group"}, func(t *tx) error {
		// Where there is none, of several that save it at once one inserts it, and the others
		// find it then.
		var have []store.Group
		added := 0
		err := t.do(ctx, s.sql.ensureGroup.with(g.App).into(func(pgx.Rows) error { added++; return nil }),
			s.sql.lockGroup.with(g.App).into(readGroups(&have)),
			s.sql.saveGroup.by(named{{"app", g.App}, {"title", g.Title}, {"address_type", kind}, {"address_list", addresses}}))
		if err != nil {
			return err
		}
		var was *store.Group
		if added == 0 && len(have) > 0 {
			was = &have[0]
		}
		return s.noteGroup(ctx, t, was, &g)
	})
	return failed(err, "save group %q", g.App)
}

// noteGroup writes an entry about the group if it has changed.
func (s *Store) noteGroup(ctx context.Context, t *tx, before, after *store.Group) error {
	if c := (changed{}); c.OfGroup(ctx, before, after) {
		return t.do(ctx, s.note(c))
	}
	return nil
}

// EnsureGroup inserts an automatic group where there is none.
func (s *Store) EnsureGroup(ctx context.Context, app string) error {
	var have []store.Group
	err := s.read(ctx, s.sql.group.with(app).into(readGroups(&have)))
	if err == nil && len(have) == 0 {
		err = s.inTx(ctx, bounds{name: "ensure_group"}, func(t *tx) error {
			added := 0
			err := t.do(ctx, s.sql.ensureGroup.with(app).into(func(pgx.Rows) error { added++; return nil }))
			if err != nil || added == 0 {
				return err
			}
			return s.noteGroup(ctx, t, nil, &store.Group{App: app})
		})
	}
	return failed(err, "ensure group %q", app)
}

// RemoveGroup deletes a group without jobs.
func (s *Store) RemoveGroup(ctx context.Context, app string) error {
	if !store.CanBeStored(app) {
		return failed(store.ErrNotFound, "remove group %q", app)
	}
	err := s.inTx(ctx, bounds{name: "remove_group"}, func(t *tx) error {
		var deleted []store.Group
		used := false
		err := t.do(ctx, s.sql.deleteGroup.with(app).into(readGroups(&deleted)),
			s.sql.groupUsed.with(app).into(scanInto(&used)))
		switch {
		case err != nil:
			return err
		case len(deleted) == 0:
			return store.ErrNotFound
		case used:
			return store.ErrGroupInUse
		}
		return s.noteGroup(ctx, t, &deleted[0], nil)
	})
	return failed(err, "remove group %q", app)
}

// Group returns one group.
func (s *Store) Group(ctx context.Context, app string) (store.Group, error) {
	if !store.CanBeStored(app) {
		return store.Group{}, failed(store.ErrNotFound, "group %q", app)
	}
	var have []store.Group
	err := s.read(ctx, s.sql.group.with(app).into(readGroups(&have)))
	if err == nil && len(have) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Group{}, failed(err, "group %q", app)
	}
	return have[0], nil
}

// Groups lists all groups in order of App.
func (s *Store) Groups(ctx context.Context) ([]store.Group, error) {
	var list []store.Group
	err := s.read(ctx, s.sql.groups.with().into(readGroups(&list)))
	return list, failed(err, "list groups")
}

// groupColumns are what readGroups reads.
const groupColumns = `app_name, title, address_type, address_list, update_time`

func readGroups(list *[]store.Group) result {
	return func(rows pgx.Rows) error {
		var g store.Group
		var kind int16
		err := rows.Scan(&g.App, &g.Title, &kind, &g.Addresses, &g.Updated)
		g.Manual, g.Updated = kind == 1, g.Updated.UTC()
		if len(g.Addresses) == 0 {
			g.Addresses = nil
		}
		*list = append(*list, g)
		return err
	}
}

// PutAddresses registers addresses or refreshes them, in one statement however many
// they are. Those whose rows others have locked are left out and make the error
// store.ErrLocked: one that somebody forgot keeps no other executor from being seen.
//
// That rows of the registry are locked says nothing about those of runs, so nothing
// else becomes careful: a batch with such a row waits a moment for it each time.
func (s *Store) PutAddresses(ctx context.Context, regs []store.Registration) error {
	if len(regs) == 0 {
		return ended(ctx)
	}
	list := lastOfEach(regs)
	args := putArgs(list)
	stored := 0
	put := func(q query) error {
		stored = 0
		return s.one(ctx, bounds{name: "put_addresses", lock: quickPatience}, q.by(args).into(func(pgx.Rows) error { stored++; return nil }))
	}
	err := put(s.sql.putAddresses)
	if lockedOut(err) {
		err = put(s.sql.putAddressesFree)
	}
	return failed(leftOut(err, len(list)-stored), "register %s", nameOf(regs))
}

// DropAddresses removes registrations of the given boot ids, or whatever theirs are
// where none is given. Rows that others have locked are as for PutAddresses.
func (s *Store) DropAddresses(ctx context.Context, regs []store.Registration) error {
	if len(regs) == 0 {
		return ended(ctx)
	}
	args := dropArgs(regs)
	left := 0
	drop := func(q query) error {
		left = 0
		return s.one(ctx, bounds{name: "drop_addresses", lock: quickPatience}, q.by(args).into(func(pgx.Rows) error { left++; return nil }))
	}
	err := drop(s.sql.dropAddresses)
	if lockedOut(err) {
		err = drop(s.sql.dropAddressesFree)
	}
	return failed(leftOut(err, left), "deregister %s", nameOf(regs))
}

// leftOut makes what was left out because of locks an error. A row that another
// transaction is about to insert cannot be passed by, so that may be all of it.
func leftOut(err error, n int) error {
	switch {
	case lockedOut(err):
		return fmt.Errorf("%w: %w", store.ErrLocked, err)
	case err == nil && n > 0:
		return fmt.Errorf("%w: %d registrations", store.ErrLocked, n)
	}
	return err
}

// nameOf is what an error says of a batch.
func nameOf(regs []store.Registration) string {
	if len(regs) == 1 {
		return fmt.Sprintf("%q of %q", regs[0].Address, regs[0].App)
	}
	return fmt.Sprintf("%d addresses", len(regs))
}

// lastOfEach are the registrations of which no later one has the app and address: a
// statement cannot change a row twice. They are in the order in which everybody
// locks rows of the registry, so that two nodes do not wait for each other.
func lastOfEach(regs []store.Registration) []store.Registration {
	list := slices.Clone(regs)
	slices.Reverse(list)
	slices.SortStableFunc(list, byAddress)
	return slices.CompactFunc(list, func(a, b store.Registration) bool { return byAddress(a, b) == 0 })
}

// byAddress compares as the "C" collation of the columns does.
func byAddress(a, b store.Registration) int {
	return cmp.Or(strings.Compare(a.App, b.App), strings.Compare(a.Address, b.Address))
}

func putArgs(regs []store.Registration) named {
	n := len(regs)
	capabilities := make([]string, n)
	for i := range regs {
		capabilities[i] = arrayText(regs[i].Capabilities)
	}
	return append(dropArgs(regs), named{{"capabilities", capabilities}}...)
}

func dropArgs(regs []store.Registration) named {
	n := len(regs)
	apps, addresses, boots := make([]string, n), make([]string, n), make([]string, n)
	for i := range regs {
		apps[i], addresses[i], boots[i] = regs[i].App, regs[i].Address, regs[i].BootID
	}
	return named{{"apps", apps}, {"addresses", addresses}, {"boots", boots}}
}

// arrayText is a list in the form in which Postgres reads an array: the rows of a
// batch have lists of different lengths, which no array of arrays can hold.
func arrayText(list []string) string {
	if len(list) == 0 {
		return "{}"
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var b strings.Builder
	for i, text := range list {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteByte('"')
		b.WriteString(quote.Replace(text))
		b.WriteByte('"')
	}
	return b.String() + "}"
}

// Addresses returns the registrations that were refreshed lately, in order.
func (s *Store) Addresses(ctx context.Context, app string, maxAge time.Duration) ([]store.Registration, error) {
	if !store.CanBeStored(app) {
		return nil, nil
	}
	var regs []store.Registration
	err := s.read(ctx, s.sql.addresses.with(app, maxAge.Microseconds()).into(readRegistrations(&regs)))
	return regs, failed(err, "addresses of %q", app)
}

// Registrations lists a page of the registry.
func (s *Store) Registrations(ctx context.Context, f store.RegistrationFilter) ([]store.Registration, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	within := int64(0) // of any age
	if f.Within > 0 {
		within = max(f.Within.Microseconds(), 1)
	}
	st := s.sql.registrations.by(named{{"after", f.After}, {"after_address", f.AfterAddress}, {"within", within}, {"limit", limit}})
	if f.App != "" {
		st = s.sql.registrationsOf.by(named{
			{"after", f.After}, {"after_address", f.AfterAddress}, {"within", within}, {"limit", limit}, {"app", f.App},
		})
	}
	var regs []store.Registration
	st.read = readRegistrations(&regs)
	return regs, failed(s.read(ctx, st), "list registrations")
}

// readRegistrations appends each row to the list.
func readRegistrations(list *[]store.Registration) result {
	return func(rows pgx.Rows) error {
		var reg store.Registration
		var updated, former pgtype.Timestamptz
		err := rows.Scan(&reg.App, &reg.Address, &reg.BootID, &reg.Capabilities, &updated, &reg.FormerBootID, &former)
		reg.Updated, reg.FormerSeen = stamp(updated), stamp(former)
		if len(reg.Capabilities) == 0 {
			reg.Capabilities = nil
		}
		*list = append(*list, reg)
		return err
	}
}

// ForgetAddresses removes registrations that were not refreshed lately. What others
// have locked, because it is being refreshed or for whatever reason, stays for the
// next call.
func (s *Store) ForgetAddresses(ctx context.Context, maxAge time.Duration) error {
	err := s.one(ctx, bounds{name: "forget_addresses"}, s.sql.forgetAddresses.with(maxAge.Microseconds()))
	return failed(err, "forget addresses")
}

// NoteServed stores how apps are served.
func (s *Store) NoteServed(ctx context.Context, apps []store.Served) error {
	if len(apps) == 0 {
		return ended(ctx)
	}
	again := false
	err := s.one(ctx, bounds{name: "note_served", lock: quickPatience}, s.sql.noteServed.by(servedArgs(apps)).into(func(rows pgx.Rows) error {
		var served bool
		err := rows.Scan(&served)
		again = again || served
		return err
	}))
	if again && err == nil {
		s.wakeNodes()
	}
	return failed(err, "note how apps are served")
}

// servedArgs are the arguments about the last of each app, in order.
func servedArgs(apps []store.Served) named {
	list := slices.Clone(apps)
	slices.Reverse(list)
	for i := range list {
		list[i].App, list[i].By = store.PlainText(list[i].App), store.ServedBy(store.PlainText(string(list[i].By)))
	}
	byApp := func(a, b store.Served) int { return strings.Compare(a.App, b.App) }
	slices.SortStableFunc(list, byApp)
	list = slices.CompactFunc(list, func(a, b store.Served) bool { return byApp(a, b) == 0 })
	names, by, gone := make([]string, len(list)), make([]string, len(list)), make([]int64, len(list))
	for i, a := range list {
		names[i], by[i], gone[i] = a.App, string(a.By), milli(stored(a.Gone))
	}
	return named{{"apps", names}, {"served", by}, {"gone", gone}}
}

// Served returns what was noted of the apps.
func (s *Store) Served(ctx context.Context, apps []string) ([]store.Served, error) {
	var list []store.Served
	names := slices.DeleteFunc(slices.Clone(apps), func(app string) bool { return !store.CanBeStored(app) })
	if len(names) == 0 {
		return nil, ended(ctx)
	}
	err := s.read(ctx, s.sql.served.with(names).into(func(rows pgx.Rows) error {
		var a store.Served
		var gone int64
		err := rows.Scan(&a.App, &a.By, &gone)
		a.Gone = fromMilli(gone)
		list = append(list, a)
		return err
	}))
	return list, failed(err, "read how apps are served")
}

// groupQueries are the statements of this file.
type groupQueries struct {
	saveGroup, ensureGroup, deleteGroup, groupUsed, lockGroup, group, groups query
	putAddresses, putAddressesFree, dropAddresses, dropAddressesFree, addresses,
	registrations, registrationsOf, forgetAddresses query
	noteServed, served query
}

func (q *groupQueries) define(sql template) {
	q.saveGroup = sql(`insert into {{schema}}.xxl_job_group as g (app_name, title, address_type, address_list, update_time)
	values ({{arg.app}}, {{arg.title}}, {{arg.address_type}}, {{arg.address_list}}, {{now}})
	on conflict (app_name) do update set title = excluded.title, address_type = excluded.address_type,
		address_list = excluded.address_list, update_time = excluded.update_time`)
	q.ensureGroup = sql(`insert into {{schema}}.xxl_job_group (app_name, title, address_type, address_list, update_time) values ($1, '', 0, '{}', {{now}})
	on conflict (app_name) do nothing returning 1`)
	q.deleteGroup = sql(`delete from {{schema}}.xxl_job_group where app_name = $1 returning ` + groupColumns)
	// By order, that is by index: where many jobs are of one app, the planner expects
	// to meet one of the app soon wherever it looks, and there may be none.
	q.groupUsed = sql(`select coalesce((select i.app_name from {{schema}}.xxl_job_info i where i.app_name >= $1 order by i.app_name limit 1) = $1, false)`)
	group := `select ` + groupColumns + ` from {{schema}}.xxl_job_group`
	q.group = sql(group + ` where app_name = $1`)
	q.lockGroup = sql(group + ` where app_name = $1 for no key update`)
	q.groups = sql(group + ` order by app_name`)

	const stamp = `date_trunc('milliseconds', clock_timestamp())`
	put := func(head, only string) string {
		return head + `insert into {{schema}}.xxl_job_registry as r (registry_group, registry_key, registry_value, boot_id, capabilities, update_time)
	select 'EXECUTOR', b.app, b.address, b.boot, b.can::text[], ` + stamp + `
	from unnest({{arg.apps}}::text[], {{arg.addresses}}::text[], {{arg.boots}}::text[], {{arg.capabilities}}::text[])
		with ordinality b(app, address, boot, can, ord)` + only + `
	order by b.ord
	on conflict (registry_group, registry_key, registry_value) do update
		set boot_id = excluded.boot_id, capabilities = excluded.capabilities, update_time = ` + stamp + `,
		former_boot = case when r.boot_id = excluded.boot_id then r.former_boot else r.boot_id end,
		former_seen = case when r.boot_id = excluded.boot_id then r.former_seen else r.update_time end
	returning 1`
	}
	// found are the rows of a batch that are there.
	const found = ` from unnest({{arg.apps}}::text[], {{arg.addresses}}::text[], {{arg.boots}}::text[]) with ordinality b(app, address, boot, ord)
	join {{schema}}.xxl_job_registry r on r.registry_group = 'EXECUTOR' and r.registry_key = b.app and r.registry_value = b.address`
	const inOrder = ` order by r.registry_key, r.registry_value`
	q.putAddresses = sql(put("", ""))
	q.putAddressesFree = sql(put(`with free as materialized (select b.ord`+found+inOrder+` for no key update of r skip locked),
	locked as materialized (select b.ord`+found+` except select ord from free)
	`, `
	where b.ord <> all(array(select ord from locked))`))
	// The rows are locked first, since a delete locks in the order of its plan. It
	// goes by their keys: of a row that was refreshed while it was waited for, the
	// place that was read is that of a version that is gone.
	const matching = found + `
	where b.boot = '' or b.boot = r.boot_id`
	drop := func(free string) string {
		return `with found as materialized (select b.ord, r.registry_key, r.registry_value` + matching + inOrder + ` for update of r` + free + `)`
	}
	const dropFound = `delete from {{schema}}.xxl_job_registry r using found
	where r.registry_group = 'EXECUTOR' and r.registry_key = found.registry_key and r.registry_value = found.registry_value`
	q.dropAddresses = sql(drop("") + `
	` + dropFound)
	q.dropAddressesFree = sql(drop(` skip locked`) + `, dropped as (` + dropFound + `)
	select b.ord` + matching + ` except select ord from found`)
	list := `select r.registry_key, r.registry_value, r.boot_id, r.capabilities, r.update_time, r.former_boot, r.former_seen from {{schema}}.xxl_job_registry r
	where r.registry_group = 'EXECUTOR'`
	q.addresses = sql(list + ` and r.registry_key = $1 and r.update_time >= clock_timestamp() - $2::bigint::double precision * interval '1 microsecond'
	order by r.registry_value`)
	list += ` and (r.registry_key, r.registry_value) > ({{arg.after}}::text, {{arg.after_address}}::text)
	and ({{arg.within}}::bigint = 0 or r.update_time >= clock_timestamp() - {{arg.within}}::bigint::double precision * interval '1 microsecond')`
	q.registrations = sql(list + inOrder + ` limit {{arg.limit}}`)
	q.registrationsOf = sql(list + ` and r.registry_key = {{arg.app}}` + inOrder + ` limit {{arg.limit}}`)
	// All of the table is read, and not by way of the index, which would be slower.
	q.forgetAddresses = sql(`delete from {{schema}}.xxl_job_registry r where r.ctid = any(array(
		select p.ctid from {{schema}}.xxl_job_registry p where p.registry_group || '' = 'EXECUTOR'
		and p.update_time < clock_timestamp() - $1::bigint::double precision * interval '1 microsecond' for update skip locked))`)
	// What is as it was is not written, and only an app that is served again is in the answer.
	q.noteServed = sql(`with b as materialized (select b.app, b.served, b.gone from unnest({{arg.apps}}::text[], {{arg.served}}::text[], {{arg.gone}}::bigint[])
		with ordinality b(app, served, gone, ord) order by b.ord),
	had as materialized (select h.app_name from b join {{schema}}.xxl_job_served h on h.app_name = b.app where h.gone_time > 0 and b.gone = 0),
	put as (insert into {{schema}}.xxl_job_served as s (app_name, served_by, gone_time) select b.app, b.served, b.gone from b
	on conflict (app_name) do update set served_by = case when excluded.served_by = '' then s.served_by else excluded.served_by end,
		gone_time = case when excluded.gone_time > 0 and s.gone_time > 0 then s.gone_time else excluded.gone_time end
	where excluded.served_by not in ('', s.served_by) or (excluded.gone_time > 0) <> (s.gone_time > 0)
	returning app_name)
	select exists (select from put join had using (app_name))`)
	q.served = sql(`select s.app_name, s.served_by, s.gone_time from {{schema}}.xxl_job_served s where s.app_name = any($1::text[]) order by s.app_name`)
}

// Tokens of apps.

var _ store.AppTokenKeeper = (*Store)(nil)

// AddAppToken keeps a token.
func (s *Store) AddAppToken(ctx context.Context, t store.AppToken) (store.AppToken, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return store.AppToken{}, err
	}
	if err := t.Validate(now); err != nil {
		return store.AppToken{}, err
	}
	t.By, t.Expires = store.Actor(ctx), t.Expires.UTC().Truncate(time.Millisecond)
	var added []store.AppToken
	err = s.inTx(ctx, bounds{name: "add_app_token"}, func(x *tx) error {
		n := 0
		if err := x.do(ctx, s.sql.countAppTokens.with().into(scanInto(&n))); err != nil {
			return err
		}
		if n >= store.MostAppTokens {
			return store.ErrTooManyTokens
		}
		err := x.do(ctx, s.sql.addAppToken.by(named{{"name", t.Name}, {"apps", t.Apps}, {"hash", []byte(t.Hash)}, {"by", t.By}, {"expires", t.Expires}}).into(readAppTokens(&added)))
		if err == nil && len(added) == 0 {
			err = store.ErrConflict
		}
		if err != nil {
			return err
		}
		c := changed{}
		c.OfAppToken(ctx, nil, &added[0])
		return x.do(ctx, s.note(c))
	})
	if err != nil {
		return store.AppToken{}, failed(err, "add token %q", t.Name)
	}
	return added[0], nil
}

// RemoveAppToken deletes a token.
func (s *Store) RemoveAppToken(ctx context.Context, name string) error {
	if !store.CanBeStored(name) {
		return failed(store.ErrNotFound, "token %q", name)
	}
	err := s.inTx(ctx, bounds{name: "remove_app_token"}, func(x *tx) error {
		var gone []store.AppToken
		err := x.do(ctx, s.sql.removeAppToken.with(name).into(readAppTokens(&gone)))
		if err == nil && len(gone) == 0 {
			err = store.ErrNotFound
		}
		if err != nil {
			return err
		}
		c := changed{}
		c.OfAppToken(ctx, &gone[0], nil)
		return x.do(ctx, s.note(c))
	})
	return failed(err, "token %q", name)
}

// AppTokens returns all.
func (s *Store) AppTokens(ctx context.Context) (list []store.AppToken, err error) {
	err = s.read(ctx, s.sql.appTokens.with().into(readAppTokens(&list)))
	return list, failed(err, "read tokens")
}

// UseAppToken notes that a token was used.
func (s *Store) UseAppToken(ctx context.Context, name, hash string) error {
	if !store.CanBeStored(name) {
		return ended(ctx) // there is none
	}
	written := 0
	err := s.one(ctx, bounds{name: "use_app_token"}, s.sql.useAppToken.by(named{{"name", name}, {"hash", []byte(hash)}, {"note", store.AppTokenNote.Milliseconds()}, {"ahead", store.ClockAhead.Milliseconds()}}).into(scanInto(&written)))
	return failed(err, "token %q", name)
}

func readAppTokens(list *[]store.AppToken) result {
	return func(rows pgx.Rows) error {
		var t store.AppToken
		var used *time.Time
		err := rows.Scan(&t.Name, &t.Apps, (*bytesText)(&t.Hash), &t.Added, &t.By, &t.Expires, &used, &t.Expired)
		if t.Added, t.Expires = t.Added.UTC(), t.Expires.UTC(); used != nil {
			t.Used = used.UTC()
		}
		*list = append(*list, t)
		return err
	}
}

// appTokenQueries are the statements of this file.
type appTokenQueries struct {
	countAppTokens, addAppToken, removeAppToken, appTokens, useAppToken query
}

func (q *appTokenQueries) define(sql template) {
	const columns = `m.name, m.apps, m.hash, m.added_time, m.added_by, m.expires_time, m.used_time, m.expires_time <= {{now}}`
	q.countAppTokens = sql(`select count(*)::int from {{schema}}.xxl_job_app_token m`)
	q.addAppToken = sql(`insert into {{schema}}.xxl_job_app_token as m (name, apps, hash, added_time, added_by, expires_time)
	values ({{arg.name}}, {{arg.apps}}, {{arg.hash}}, {{now}}, {{arg.by}}, {{arg.expires}}) on conflict (name) do nothing returning ` + columns)
	q.removeAppToken = sql(`delete from {{schema}}.xxl_job_app_token m where m.name = $1 returning ` + columns)
	q.appTokens = sql(`select ` + columns + ` from {{schema}}.xxl_job_app_token m order by m.name`)
	q.useAppToken = sql(`update {{schema}}.xxl_job_app_token m set used_time = {{now}} where m.name = {{arg.name}} and m.hash = {{arg.hash}}
		and (m.used_time is null or m.used_time <= {{now}} - {{arg.note}}::bigint::double precision * interval '1 millisecond'
			or m.used_time > {{now}} + {{arg.ahead}}::bigint::double precision * interval '1 millisecond') returning 1`)
}
