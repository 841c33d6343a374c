package postgres

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"
)

// What users of a console, their sessions and their tokens may cost, with ten thousand users, of
// whom thirty are admins, fifty thousand sessions and as many tokens and tries.

const planUsers = 10_000

func (d *planData) fillAccounts(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_user (username, title, password, role, permission, scripts, disabled, version, added, password_set)
	select 'user-' || n, '', '', case when n % 333 = 0 then 1 else 0 end, '{"app-1":"viewer"}', false, n % 50 = 0, 1, now(), now() from generate_series(1, $1::int) n`, planUsers)
	d.exec(t, `insert into {{schema}}.xxl_job_user_session (hash, username, client, agent, began, seen, proved)
	select pg_catalog.sha256(n::text::bytea), 'user-' || n % $1::int + 1, '', '', now() - n * interval '1 s', now() - n % 40000 * interval '1 s', now() from generate_series(1, 5 * $1::int) n`, planUsers)
	d.exec(t, `insert into {{schema}}.xxl_job_user_token (username, name, role, permission, scripts, hash, added, expires, used)
	select 'user-' || n % $1::int + 1, 'token', 0, '', false, pg_catalog.sha256(n::text::bytea), now(), now() + interval '30 days', now() from generate_series(1, 5 * $1::int) n`, planUsers)
	d.exec(t, `insert into {{schema}}.xxl_job_user_try (bucket, failed, last) select n, 3, now() from generate_series(0, 49999) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_user_code (hash, until) select pg_catalog.sha256(n::text::bytea), now() + interval '1 day' from generate_series(1, 100) n`)
}

// accountTables are those that fillAccounts fills.
const accountTables = " xxl_job_user xxl_job_user_session xxl_job_user_token xxl_job_user_try xxl_job_user_code"

func (d *planData) accountCases() []planCase {
	q, name, hash := d.sql, "user-4711", []byte(fmt.Sprintf("%-32s", "none"))
	user := named{{"name", name}, {"title", ""}, {"password", ""}, {"role", 0}, {"permission", ""}, {"scripts", false}, {"disabled", false}}
	added := append(named{{"settings", ""}}, user...)
	added[1].value = "somebody"
	known := sha256.Sum256([]byte("4711"))
	idle, most := (12 * time.Hour).Milliseconds(), (7 * 24 * time.Hour).Milliseconds()
	session := named{{"hash", hash}, {"idle", idle}, {"most", most}, {"note", int64(600_000)}}
	return []planCase{
		{name: "addUser", st: q.addUser.by(added), rows: 1},
		{name: "anyUser", st: q.anyUser.with(), rows: 1, wasted: 1, scans: []string{"xxl_job_user"}}, // it looks at one
		{name: "updateUser", st: q.updateUser.by(user), rows: 1},
		{name: "lockUsers", st: q.lockUsers.with(name), rows: 31, batch: 62},
		{name: "removeUser", st: q.removeUser.with(name), batch: 1},
		{name: "rehash", st: q.rehash.by(named{{"name", name}, {"old", ""}, {"hash", "anew"}}), rows: 1, batch: 3},
		{name: "saveSettings", st: q.saveSettings.with(name, "{}"), rows: 1},
		{name: "user", st: q.user.with(name), rows: 1},
		{name: "users", st: q.users.with("user-3", 100), rows: 100},
		{name: "addCode", st: q.addCode.by(named{{"hash", hash}, {"ms", int64(1000)}}), batch: 1},
		{name: "trimCodes", st: q.trimCodes.with(100), batch: 101, scans: []string{"xxl_job_user_code"}, wasted: 200},
		{name: "lockCodes", st: q.lockCodes.with(hash), rows: 100, scans: []string{"xxl_job_user_code"}},
		{name: "dropCodes", st: q.dropCodes.with(), batch: 100, scans: []string{"xxl_job_user_code"}},
		{name: "lockLogin", st: q.lockLogin.with(name), rows: 1},
		{name: "addSession", st: q.addSession.by(named{{"hash", hash}, {"user", name}, {"client", ""}, {"agent", ""}}), rows: 1},
		{name: "dropIdle", st: q.dropIdle.with(idle), batch: 2000},
		{name: "dropOld", st: q.dropOld.with(most), batch: 2000},
		{name: "trimSessions", st: q.trimSessions.with(name, 50), batch: 50, wasted: 50},
		{name: "session", st: q.session.by(session), wasted: 1},
		{name: "seeSession", st: q.seeSession.with(hash)},
		{name: "proveSession", st: q.proveSession.with(hash)},
		{name: "endSession", st: q.endSession.with(name, int64(1)), wasted: 50},
		{name: "endSessions", st: q.endSessions.with(name), batch: 50},
		{name: "sessions", st: q.sessions.by(named{{"user", name}, {"idle", idle}, {"most", most}}), rows: 1, wasted: 50},
		{name: "tryLogin", st: q.tryLogin.by(named{{"bucket", 4711}, {"free", 5}, {"longest", 30.0}, {"kept", 3600.0}}), rows: 1},
		{name: "tries", st: q.tries.with(4711), rows: 1},
		{name: "passLogin", st: q.passLogin.with(4711), batch: 1},
		{name: "lockOwner", st: q.lockOwner.with(name), rows: 1},
		{name: "countTokens", st: q.countTokens.with(name), rows: 1, batch: 50},
		{name: "addToken", st: q.addToken.by(named{{"user", name}, {"name", "ci"}, {"role", 0}, {"permission", ""}, {"scripts", false}, {"hash", hash}, {"expires", d.now}}), rows: 1},
		{name: "token", st: q.token.by(named{{"id", int64(4711)}, {"note", int64(3_600_000)}, {"hash", known[:]}}), rows: 1},
		{name: "useToken", st: q.useToken.with(int64(4711)), rows: 1},
		{name: "removeToken", st: q.removeToken.with(name, int64(1)), wasted: 50},
		{name: "removeTokens", st: q.removeTokens.with(name), batch: 50},
		{name: "tokens", st: q.tokens.with(name), rows: 5},
	}
}
