package agents

// Tally adds up the usage of messages. A message may be reported several times; its last report counts. Sub-agents interleave
// their messages, so Tally keeps several open, up to a limit.
type Tally struct {
	settled Usage
	open    []messageUsage // oldest first
}

type messageUsage struct {
	message string
	usage   Usage
}

const maxOpen = 64

// Set stores the usage of a message and replaces an earlier one of the same message.
func (t *Tally) Set(message string, u Usage) {
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
	t.open = append(t.open, messageUsage{message, u})
}

// Sum returns the usage of all messages.
func (t *Tally) Sum() Usage {
	sum := t.settled
	for _, c := range t.open {
		sum = sum.Add(c.usage)
	}
	return sum
}
