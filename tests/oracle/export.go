// SPDX-License-Identifier: Apache-2.0

package trace

import "internal/trace/tracev2"

// OracleEvent returns what the reader knows of an event, before its public API simplifies it: the type on the wire (255 for
// Sync), the context, and the arguments that have a meaning for this type. The build places this file inside the installed
// internal/trace by an overlay.
func (e Event) OracleEvent() (typ uint8, time, m, p, g int64, args []uint64) {
	typ = uint8(e.base.typ)
	time, m, p, g = int64(e.base.time), int64(e.ctx.M), int64(e.ctx.P), int64(e.ctx.G)
	n := 1
	if e.base.typ != evSync {
		n = oracleArgs(typ)
	}
	return typ, time, m, p, g, e.base.args[:n]
}

// The reader reuses one argument array for all events of a thread, so slots after an event's own arguments have values of
// earlier events. oracleArgs returns how many slots have a meaning for a type, if that differs from the table.
func oracleArgs(typ uint8) int {
	switch typ {
	case 7: // CPUSample: the stack alone
		return 1
	case 13: // ProcStatus: the state before
		return 3
	case 12, 41: // ProcSteal: the status stolen out of; UserTaskEnd: parent and name
		return 4
	}
	return specArgs(typ)
}

func specArgs(typ uint8) int { return len(tracev2.Specs()[typ].Args) - 1 }
