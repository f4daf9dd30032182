// SPDX-License-Identifier: Apache-2.0

package traceagent

import "time"

const rateBurst = 50 * time.Millisecond

// pacer limits sending to a number of bytes a second, 0: no limit.
type pacer struct {
	bytes uint64
	due   time.Time // when the bytes sent so far are paid for
}

func (p *pacer) wait() time.Duration {
	if p.bytes == 0 {
		return 0
	}
	now := time.Now()
	if earliest := now.Add(-rateBurst); p.due.Before(earliest) {
		p.due = earliest
	}
	return p.due.Sub(now)
}

func (p *pacer) charge(bytes uint64) {
	if p.bytes > 0 {
		p.due = p.due.Add(time.Duration(float64(bytes) / float64(p.bytes) * float64(time.Second)))
	}
}
