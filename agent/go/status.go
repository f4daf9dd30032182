// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"unicode"
)

// LogValue returns the figures as a group, for slog.Info("trace", "agent", agent.Status()).
func (s Status) LogValue() slog.Value {
	var attributes []slog.Attr
	s.each(func(name string, value any) { attributes = append(attributes, slog.Any(name, value)) })
	return slog.GroupValue(attributes...)
}

// String returns the status as JSON. So an Agent is an expvar.Var: expvar.Publish("traceagent", agent).
func (a *Agent) String() string {
	figures := map[string]any{}
	a.Status().each(func(name string, value any) { figures[name] = value })
	text, _ := json.Marshal(figures) // numbers and text: it cannot fail
	return string(text)
}

// each passes the fields with names as in the collector's JSON: LostBytes is lost_bytes.
func (s Status) each(take func(name string, value any)) {
	fields := reflect.ValueOf(s)
	for i := range fields.NumField() {
		var name strings.Builder
		for at, letter := range fields.Type().Field(i).Name {
			if unicode.IsUpper(letter) && at > 0 {
				name.WriteByte('_')
			}
			name.WriteRune(unicode.ToLower(letter))
		}
		take(name.String(), fields.Field(i).Interface())
	}
}
