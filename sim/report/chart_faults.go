package report

import (
	"fmt"
	"slices"
	"strings"
)

// laneHeight is the room of one fault's name and times, in SVG's units.
const laneHeight = 30.0

// over lays the faults over a chart of time, and names them where it is pointed
// at.
func (c chart) over(x scale, faults []Fault) chart {
	c.Bands, c.Marks = place(x, faults)
	for i := range c.Spots {
		s := &c.Spots[i]
		var names []string
		for _, f := range faults {
			if across(x, f.At) <= s.X+s.Width && across(x, f.Until) >= s.X && !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
		if len(names) > 0 {
			s.Text += "; fault: " + strings.Join(names, ", ")
		}
	}
	return c
}

// place returns faults that lasted as bands, and those of a moment as marks.
func place(x scale, faults []Fault) (bands []band, marks []mark) {
	for _, f := range faults {
		from, name := across(x, f.At), fmt.Sprintf("%s, at %s", f.Name, Seconds(f.At))
		if f.Until > f.At {
			bands = append(bands, band{X: from, Width: max(2, across(x, f.Until)-from), Name: name + " for " + Seconds(f.Until-f.At)})
			continue
		}
		marks = append(marks, mark{X: from, Name: name})
	}
	return bands, marks
}

// faultsOverTime draws when each fault struck: one lane for those of one name.
func (r *Report) faultsOverTime(x scale) chart {
	c := draw("faults", "Faults over time", "as lines and shades in the other charts", x, scale{}, Number[float64])
	var names, says []string
	byName := map[string][]Fault{}
	for _, f := range r.Faults {
		if byName[f.Name] == nil {
			names = append(names, f.Name)
		}
		byName[f.Name] = append(byName[f.Name], f)
	}
	for i, name := range names {
		l := lane{Y: marginTop + float64(i)*laneHeight, Name: name}
		l.Bands, l.Marks = place(x, byName[name])
		c.Lanes = append(c.Lanes, l)
		says = append(says, fmt.Sprintf("%d of %s", len(byName[name]), name))
	}
	c.Plot, c.Empty = float64(len(names))*laneHeight, false
	c.Says = "Faults over time: " + strings.Join(says, "; ")
	return c
}
