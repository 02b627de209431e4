package agents

// Tally adds up the usage of messages. A message is reported several times; its last report counts. Sub-agents interleave
// their messages, so Tally remembers several, up to a limit.
type Tally struct {
	settled Usage
	open    []counted // oldest first
}

type counted struct {
	message string
	usage   Usage
}

const maxOpen = 64

// Note stores the usage of a message in place of what was noted of it before.
func (t *Tally) Note(message string, u Usage) {
	for i := range t.open {
		if t.open[i].message == message {
			t.open[i].usage = u
			return
		}
	}
	if len(t.open) == maxOpen {
		t.settled = t.settled.Add(t.open[0].usage)
		t.open = append(t.open[:0], t.open[1:]...)
	}
	t.open = append(t.open, counted{message, u})
}

// Sum is the usage of all messages.
func (t *Tally) Sum() Usage {
	sum := t.settled
	for _, c := range t.open {
		sum = sum.Add(c.usage)
	}
	return sum
}
