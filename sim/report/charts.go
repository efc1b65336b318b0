package report

import (
	"fmt"
	"slices"
	"strings"
)

// gauge describes a chart of one value over time.
type gauge struct {
	id, title, about, unit string
	of                     func(*Sample) float64
	format                 func(float64) string
	// ofWatches is set if it is measured of open watches.
	ofWatches bool
}

var gauges = []gauge{
	{"writes", "Writes per second", "that succeeded", "writes per second", func(s *Sample) float64 { return s.WriteRate }, Number[float64], false},
	{"deliveries", "Deliveries per second", "events handed to consumers", "events per second", func(s *Sample) float64 { return s.DeliveryRate }, Number[float64], false},
	{"lag", "Lag", "events that the watcher farthest behind was behind", "events", func(s *Sample) float64 { return float64(s.Lag) }, Number[float64], true},
	{"stalled", "Stalled watchers", "farther behind than their buffer", "watchers", func(s *Sample) float64 { return float64(s.Stalled) }, Number[float64], true},
	{"heap", "Heap", "objects, dead ones too until they are collected", "", func(s *Sample) float64 { return float64(s.Heap) }, Memory, false},
	{"others", "Other programs", "what other programs and other machines used of the processors", "% of the processors", func(s *Sample) float64 { return 100 * s.Others }, func(y float64) string { return percent(y / 100) }, false},
	{"timers", "Late timers", "how late the machine was at most with a timer, which adds to latencies", "milliseconds", func(s *Sample) float64 { return 1000 * s.TimerLate }, func(y float64) string { return Seconds(y / 1000) }, false},
	{"goroutines", "Goroutines", "of the engine and of the load", "goroutines", func(s *Sample) float64 { return float64(s.Goroutines) }, Number[float64], false},
}

// charts returns all charts of a report.
func (r *Report) charts() []chart {
	if len(r.Samples) == 0 {
		return nil
	}
	x := elapsed(r.Samples[len(r.Samples)-1].At)
	all := []chart{r.latencyOverTime(x), r.latencyByPercentile()}
	watches := slices.ContainsFunc(r.Samples, func(s Sample) bool { return s.Watches > 0 })
	for _, g := range gauges {
		if watches || !g.ofWatches {
			all = append(all, r.gauge(g, x))
		}
	}
	if len(r.Faults) > 0 {
		all = append(all, r.faultsOverTime(x))
	}
	return all
}

// gauge returns the chart of one value over time.
func (r *Report) gauge(g gauge, x scale) chart {
	var xs, ys []float64
	for i := range r.Samples {
		xs, ys = append(xs, r.Samples[i].At), append(ys, g.of(&r.Samples[i]))
	}
	y := counting(largest(ys))
	y.caption = g.unit
	if g.unit == "" {
		y = memory(largest(ys))
	}
	return draw(g.id, g.title, g.about, x, y, g.format, series{name: g.title, xs: xs, ys: ys}).withTimes(xs).withFaults(x, r.Faults)
}

// latencyOverTime returns the chart of the percentiles of each interval.
func (r *Report) latencyOverTime(x scale) chart {
	highest, p99, p50 := series{name: "max", gaps: true}, series{name: "p99", gaps: true}, series{name: "p50", gaps: true}
	for i := range r.Samples {
		s := &r.Samples[i]
		for line, y := range map[*series]float64{&highest: s.Max, &p99: s.P99, &p50: s.P50} {
			line.xs, line.ys = append(line.xs, s.At), append(line.ys, y)
		}
	}
	y := logarithmic(least(p50.ys), largest(highest.ys))
	c := draw("latency", "Latency over time", "from a write's due time until the consumer had the event; gaps had none", x, y, Seconds, highest, p99, p50)
	return c.withTimes(highest.xs).withFaults(x, r.Faults)
}

// latencyByPercentile returns the chart of the curves of all stages.
func (r *Report) latencyByPercentile() chart {
	var all []series
	var ys []float64
	last := 0.0
	for _, s := range r.Latency {
		line := series{name: s.Name}
		for _, p := range s.Curve {
			line.xs, line.ys = append(line.xs, p.Percentile), append(line.ys, p.Seconds)
			ys = append(ys, p.Seconds)
			if p.Percentile < 100 {
				last = max(last, p.Percentile)
			}
		}
		if len(line.xs) > 0 {
			all = append(all, line)
		}
	}
	x, y := nines(last), logarithmic(least(ys), largest(ys))
	c := draw("percentiles", "Latency by percentile", "how it is split: stages overlap, see the table", x, y, Seconds, all...)
	c.Spots = spots(x, Seconds, all[:min(1, len(all))]) // the stages have different percentiles
	for i := range c.Spots {
		c.Spots[i].Text = fmt.Sprintf("%.5g %%: %s", all[0].xs[i], c.Spots[i].Text)
	}
	return c
}

// withTimes adds the time to the text of each spot.
func (c chart) withTimes(xs []float64) chart {
	for i := range c.Spots {
		c.Spots[i].Text = fmt.Sprintf("at %s: %s", Seconds(xs[i]), c.Spots[i].Text)
	}
	return c
}

func largest(ys []float64) (most float64) {
	for _, y := range ys {
		most = max(most, y)
	}
	return most
}

// least returns the smallest value above zero.
func least(ys []float64) (low float64) {
	for _, y := range ys {
		if y > 0 && (low == 0 || y < low) {
			low = y
		}
	}
	return low
}

// laneHeight is the height of the lane of one fault, in SVG's units.
const laneHeight = 30.0

// withFaults marks the faults in a chart over time, and adds their names to the texts
// of the spots.
func (c chart) withFaults(x scale, faults []Fault) chart {
	c.Bands, c.Marks = faultMarks(x, faults)
	for i := range c.Spots {
		s := &c.Spots[i]
		var names []string
		for _, f := range faults {
			if xPosition(x, f.At) <= s.X+s.Width && xPosition(x, f.Until) >= s.X && !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
		if len(names) > 0 {
			s.Text += "; fault: " + strings.Join(names, ", ")
		}
	}
	return c
}

// faultMarks returns the faults that lasted as bands, and those of one moment as marks.
func faultMarks(x scale, faults []Fault) (bands []band, marks []mark) {
	for _, f := range faults {
		from, name := xPosition(x, f.At), fmt.Sprintf("%s, at %s", f.Name, Seconds(f.At))
		if f.Until > f.At {
			bands = append(bands, band{X: from, Width: max(2, xPosition(x, f.Until)-from), Name: name + " for " + Seconds(f.Until-f.At)})
			continue
		}
		marks = append(marks, mark{X: from, Name: name})
	}
	return bands, marks
}

// faultsOverTime returns the chart of the faults, with a lane for each name.
func (r *Report) faultsOverTime(x scale) chart {
	c := draw("faults", "Faults over time", "as lines and shades in the other charts", x, scale{}, Number[float64])
	var names, counts []string
	byName := map[string][]Fault{}
	for _, f := range r.Faults {
		if byName[f.Name] == nil {
			names = append(names, f.Name)
		}
		byName[f.Name] = append(byName[f.Name], f)
	}
	for i, name := range names {
		l := lane{Y: marginTop + float64(i)*laneHeight, Name: name}
		l.Bands, l.Marks = faultMarks(x, byName[name])
		c.Lanes = append(c.Lanes, l)
		counts = append(counts, fmt.Sprintf("%d of %s", len(byName[name]), name))
	}
	c.Plot, c.Empty = float64(len(names))*laneHeight, false
	c.Description = "Faults over time: " + strings.Join(counts, "; ")
	return c
}
