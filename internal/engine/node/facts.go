package node

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/alarm"
)

// Facts are what a console beside the scheduler says of its settings, by name: numbers, truths, lengths of
// time, texts and lists of these. None of them is a secret.
func (s *Node) Facts() map[string]any {
	c := &s.Cfg
	tokens := map[string]int{}
	for app, list := range c.HTTP.Tokens {
		tokens[app] = len(list)
	}
	rules := []string{}
	for i := range c.Alarms {
		rules = append(rules, ruleFact(&c.Alarms[i]))
	}
	return map[string]any{
		"tokens": tokens, "rules": rules, "jobsapi": slices.Clone(c.HTTP.JobsAPI), "insecure": c.HTTP.Insecure,
		"node": c.Node, "app": c.App, "zone": c.Location.String(), "routers": slices.Sorted(maps.Keys(c.Routers)),
		"catchup": string(c.CatchUp), "misfire": c.MisfireThreshold, "stopgrace": c.StopGrace, "calltimeout": c.HTTP.CallTimeout,
		"runretention": c.RunRetention, "changeretention": c.ChangeRetention,
		"loginstore": c.Logs.InStore, "logrun": c.Logs.RunBytes, "logjob": c.Logs.JobBytes,
		"shards": c.Cluster.Shards, "lease": c.Cluster.LeaseTTL, "lostafter": c.Cluster.LostAfter, "dead": c.Cluster.Dead, "pruneafter": c.Cluster.PruneAfter,
		"maxheld": c.Limits.MaxHeld, "maxplanned": c.Limits.MaxPlanned, "registrations": c.HTTP.MaxRegistrations, "overdue": c.Limits.Overdue,
	}
}

// ruleFact is an alarm rule in a line: its name, by which package it tells, and what it is about. Whom it tells
// is not in it, for that may have a secret.
func ruleFact(r *alarm.Rule) string {
	by, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", r.To), "*"), ".")
	words := []string{r.Name, path.Base(by)}
	var causes []string
	for _, c := range r.Causes {
		causes = append(causes, string(c))
	}
	for _, list := range [][]string{r.Apps, r.Jobs, causes} {
		if len(list) > 0 {
			words = append(words, strings.Join(list, ", "))
		}
	}
	return strings.Join(words, " · ")
}
