package console

// What the record of changes says of a field of a job: its name and its value as the form has
// them.

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// fieldOfRun is the name and the value of a field of a run that somebody has triggered.
func (p *page) fieldOfRun(name, text string) (string, string) {
	switch name {
	case "Type":
		return p.T("field.trigger"), p.Type(xxljob.Run{Type: xxljob.TriggerType(text)})
	case "Param":
		return p.T("field.param"), text
	}
	return p.fieldName(name), text
}

// fieldName is what the form calls a field of a job. One that the form does not have has the
// name that programs know.
func (p *page) fieldName(name string) string {
	switch name {
	case "Schedule":
		return p.T("field.schedule")
	case "Stopped":
		return p.T("field.state")
	case "GlueType":
		return p.T("field.gluetype")
	case "StopReason", "KillReason":
		return p.T("field.reason")
	case "PasswordSet":
		return p.T("field.passwordset")
	case "RetryBackoff":
		return p.T("field.retrybackoff")
	case "User":
		return p.T("object.user")
	case "Title":
		return p.T("users.shown")
	case "Admin":
		return p.T("users.admin.short")
	case "Scripts":
		return p.T("field.scripts")
	case "Disabled":
		return p.T("users.state")
	case "Apps":
		return p.T("field.apps")
	case "Expires":
		return p.T("field.expires")
	case "Sessions":
		return p.T("field.sessions")
	}
	if f := p.q.fields[name]; f != nil {
		return p.T("field." + f.name)
	}
	return name
}

// fieldText is a value of a field of a job as the form has it.
func (p *page) fieldText(name string, v json.RawMessage) string {
	if name == "Schedule" {
		var s xxljob.Schedule
		if json.Unmarshal(v, &s) == nil && len(v) > 0 {
			return strings.TrimSpace(s.DescribeIn(p.Lang()) + "  " + s.Conf)
		}
	}
	var list []string
	if json.Unmarshal(v, &list) == nil && list != nil {
		return strings.Join(list, ", ")
	}
	text := valueText(v)
	if name == "StopReason" && text == store.StopFinished {
		return p.T("reason.finished")
	}
	if name == "RetryBackoff" {
		var b xxljob.Backoff
		switch {
		case json.Unmarshal(v, &b) != nil || b == xxljob.Backoff{}:
		case b.Max > 0:
			return p.T("said.backoff.max", "first", p.Span(b.First), "max", p.Span(b.Max))
		default:
			return p.T("said.backoff", "first", p.Span(b.First))
		}
	}
	if name == "Stopped" && text != "" {
		return p.T(map[bool]string{true: "jobs.status.off", false: "jobs.status.on"}[text == "true"])
	}
	if name == "Disabled" && text != "" {
		return p.T(map[bool]string{true: "users.state.off", false: "users.state.on"}[text == "true"])
	}
	if roles := map[string]string{}; name == "Apps" && json.Unmarshal(v, &roles) == nil {
		return p.rolesIn(roles)
	}
	f := p.q.fields[name]
	if name == "PasswordSet" || name == "Expires" || f != nil && f.kind == aMoment {
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil && !t.IsZero() {
			return p.Stamp(t)
		}
	}
	if name == "Admin" || name == "Scripts" || f != nil && f.kind == aCheck {
		if yes, err := strconv.ParseBool(text); err == nil {
			return p.T(map[bool]string{true: "value.yes", false: "value.no"}[yes])
		}
	}
	switch {
	case f == nil:
	case f.kind == aChoice:
		return p.Option(f.name, text)
	case f.span:
		if ns, err := strconv.ParseInt(text, 10, 64); err == nil {
			return p.q.exact(time.Duration(ns))
		}
	}
	return text
}

// formFieldsByOf are the fields of the form by those of a job that one of them has the whole of.
func formFieldsByOf() map[string]*formField {
	fields := map[string]*formField{}
	for _, g := range formGroups() {
		for i := range g.fields {
			f := &g.fields[i]
			if _, twice := fields[f.of]; twice {
				f = nil
			}
			fields[g.fields[i].of] = f
		}
	}
	return fields
}
