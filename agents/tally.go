package agents

// tally adds up the usage of messages. A message is reported several times; its last report counts. Sub-agents interleave
// their messages, so tally remembers several, up to a limit.
type tally struct {
	settled Usage
	open    []counted // oldest first
}

type counted struct {
	message string
	usage   Usage
}

const maxOpen = 64

func (t *tally) note(message string, u Usage) {
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

func (t *tally) sum() Usage {
	sum := t.settled
	for _, c := range t.open {
		sum = sum.Add(c.usage)
	}
	return sum
}
