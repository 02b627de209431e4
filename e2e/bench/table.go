package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// values are repeated measurements of one quantity: durations in nanoseconds or sizes in bytes.
type values []float64

// samples are the costs of repeated runs of one command.
type samples struct {
	elapsed, cpu durations
	memory       sizes
}

type (
	durations values
	sizes     values
)

func (s *samples) add(c cost) {
	s.elapsed = append(s.elapsed, float64(c.elapsed))
	s.cpu = append(s.cpu, float64(c.cpu))
	if c.memory > 0 {
		s.memory = append(s.memory, float64(c.memory))
	}
}

// per divides by n.
func (d durations) per(n int) durations {
	out := slices.Clone(d)
	for i := range out {
		out[i] /= float64(n)
	}
	return out
}

// quantity is a column of the table.
type quantity interface {
	values() values
	show(v float64) string
}

func (d durations) values() values { return values(d) }
func (s sizes) values() values     { return values(s) }

func (durations) show(v float64) string {
	return fmt.Sprintf("%.2f ms", v/float64(time.Millisecond))
}

func (sizes) show(v float64) string { return fmt.Sprintf("%.1f MB", v/1e6) }

func (v values) min() float64 { return slices.Min(v) }

func (v values) median() float64 {
	sorted := slices.Sorted(slices.Values(v))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// table collects the measurements.
type table struct{ rows [][]string }

// add adds a row: ralph's values, those of the bare operation (nil if there is none), and the target for their ratio.
func (t *table) add(name string, ours, bare quantity, aim string) {
	cells := []string{name}
	for _, q := range []quantity{ours, bare} {
		if q == nil || len(q.values()) == 0 {
			cells = append(cells, "-", "-")
			continue
		}
		cells = append(cells, q.show(q.values().min()), q.show(q.values().median()))
	}
	least, middle := "-", "-"
	if bare != nil && len(ours.values()) > 0 {
		o, b := ours.values(), bare.values()
		least, middle = fmt.Sprintf("%.2f", o.min()/b.min()), fmt.Sprintf("%.2f", o.median()/b.median())
	}
	t.rows = append(t.rows, append(cells, least, middle, aim))
}

func (t *table) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "what\tralph min\tmedian\tbare min\tmedian\tratio min\tmedian\taim")
	for _, r := range t.rows {
		for i, cell := range r {
			if i > 0 {
				fmt.Fprint(out, "\t")
			}
			fmt.Fprint(out, cell)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}
