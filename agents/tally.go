package agents

// tally adds up the usage of messages that are reported several times, each time anew: the last report of a message
// counts. It remembers a bounded number of messages; sub-agents at work at once interleave theirs.
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
