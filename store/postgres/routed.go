package postgres

// How a run was routed is most of what there is in trigger_msg, and would be written anew with each
// version of the row. Of a run at its owner's own executors the column routed says it in short: the
// number of the route and, where there were others to choose from than the address of the run, a
// blank and the addresses. The rest are other columns, which nothing changes while routed is set:
// a statement that does change them has the text written out first (see spelledOut). What is said
// later is in trigger_msg, and follows.

import (
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob/store"
)

// routes are the routes that have a number, which is their place, counted from 1. It stays what it
// is, for it is stored.
var routes = []string{
	"FIRST", "LAST", "ROUND", "RANDOM", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED",
	"FAILOVER", "BUSYOVER", "SHARDING_BROADCAST", "NEAREST",
}

// shortening finds what is in short for a start, and looks at a message again only where it is another.
type shortening struct {
	kind                store.TriggerType
	block, address, msg string
	isRead              bool
	short               string
}

// of is it for a start that isOwn, of a run that is known; empty where the message says it otherwise.
func (s *shortening) of(st *store.Start) string {
	if !s.isRead || s.msg != st.Msg || s.kind != st.Known.Type || s.block != st.Block || s.address != st.Address {
		*s = shortening{kind: st.Known.Type, block: st.Block, address: st.Address, msg: st.Msg, isRead: true}
		s.short = s.read()
	}
	return s.short
}

func (s *shortening) read() string {
	r := routedBy(string(s.kind), s.block, s.address)
	if s.kind == "" || s.block == "" || !r.Read(s.msg) {
		return ""
	}
	number := slices.Index(routes, r.Route) + 1
	switch {
	case number == 0:
		return ""
	case r.Addresses == s.address:
		return strconv.Itoa(number)
	}
	return strconv.Itoa(number) + " " + r.Addresses
}

// routedBy is what other columns say of it.
func routedBy(kind, block, address string) store.Routed {
	incarnation, _ := store.LocalIncarnation(address)
	return store.Routed{Type: kind, Node: store.NodeOf(incarnation), Block: block}
}

// spelling writes out what columns have in short. While rows say the same, it makes no text twice.
type spelling struct {
	routed, kind, block, address, more string
	text                               string
}

// of is the TriggerMsg by the columns of a row, of which more is trigger_msg. A node of the version
// before knows nothing of routed: in a row whose address it has taken away, or that it has started
// anew, nothing is left of what was in short.
func (s *spelling) of(routed, kind, block, address, more string) string {
	if routed == "" || address == "" || more != "" && (strings.HasPrefix(more, startLine) || strings.Contains(more, "\n"+startLine)) {
		return more
	}
	if s.text == "" || s.routed != routed || s.kind != kind || s.block != block || s.address != address || s.more != more {
		*s = spelling{routed, kind, block, address, more, spell(routed, kind, block, address)}
		if more != "" {
			addLine(&s.text, more)
		}
	}
	return s.text
}

// ofKnown is that of a run of which the caller knows what nothing changes.
func (s *spelling) ofKnown(r *store.Run, routed, more *repeated) string {
	return s.of(routed.text, string(r.Type), r.Block, r.Address, more.text)
}

// spell is the inverse of shortening.
func spell(routed, kind, block, address string) string {
	r := routedBy(kind, block, address)
	number, addresses, others := strings.Cut(routed, " ")
	if r.Addresses = address; others {
		r.Addresses = addresses
	}
	if n, err := strconv.Atoi(number); err == nil && 0 < n && n <= len(routes) {
		r.Route = routes[n-1]
	}
	return r.String()
}

// startLine begins the lines of a start in trigger_msg.
const startLine = "type: "

// spelledOut is the TriggerMsg of a run l, for statements that look into it, or that change what
// routed relies on: those set routed to null.
func spelledOut() string {
	return `case when l.routed is null or l.executor_address is null or l.trigger_msg ~ '(^|\n)` + startLine + `' then l.trigger_msg
	else pg_catalog.concat_ws(E'\n', 'type: ' || l.trigger_type,
		'node: ' || coalesce(pg_catalog.substring(pg_catalog.substr(l.executor_address, 9), '^(.*)-[^-]*$'), ''),
		'route: ' || coalesce((array['` + strings.Join(routes, "', '") + `'])[pg_catalog.split_part(l.routed, ' ', 1)::int], '') || ', block: ' || l.executor_block_strategy,
		'addresses: ' || case when position(' ' in l.routed) > 0 then pg_catalog.substr(l.routed, position(' ' in l.routed) + 1) else l.executor_address end,
		nullif(l.trigger_msg, '')) end`
}
