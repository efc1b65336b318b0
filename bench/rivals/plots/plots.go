package plots

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/brewer"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/bench/compare"
)

// The size of a plot with its legend, of what stays white around both, and how far below
// the top the legend begins. Beside the legend there is room for fonts that are wider than
// the library's, see [save].
const (
	width     = 8 * vg.Inch
	room      = vg.Inch
	height    = 4 * vg.Inch
	margin    = 4 * vg.Millimeter
	legendTop = 10 * vg.Millimeter
)

// Write draws all plots of the report into files of the directory, which it makes.
func Write(report *compare.Report, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write plots: %w", err)
	}
	for _, d := range drawings(report.Rows()) {
		if err := d.write(dir); err != nil {
			return fmt.Errorf("write plots: %w", err)
		}
	}
	return nil
}

// drawing is one plot.
type drawing struct {
	file, title, x, y string
	lines             []line
}

// line is the figures of one contender, or of one workload, by size.
type line struct {
	name   string
	points []point
}

type point struct {
	size float64
	of   compare.Spread
}

func drawings(rows []compare.Row) []drawing {
	return slices.DeleteFunc([]drawing{
		{
			file: "watchers.svg", title: "Deliveries to watchers of everything, as fast as it goes", x: "watchers", y: "deliveries/s",
			lines: byContender(rows, bench.Deliveries, sized{"W4/10", 10}, sized{"W4/100", 100}, sized{"W1", 1000}),
		},
		{
			file: "subscribers.svg", title: "Deliveries as a bus, as fast as it goes", x: "subscribers", y: "deliveries/s",
			lines: byContender(rows, bench.Deliveries, sized{"W15/1", 1}, sized{"W15/100", 100}, sized{"W15/1000", 1000}),
		},
		{
			file: "growth-writes.svg", title: "Writes as watchers or objects become more; each matches 10 watchers", x: "watchers or objects", y: "writes/s",
			lines: byGrowth(rows, bench.Writes),
		},
		{
			file: "growth-p99.svg", title: "Latency at 1,000 writes/s as watchers or objects become more", x: "watchers or objects", y: "p99 in µs",
			lines: byGrowth(rows, bench.P99),
		},
	}, func(d drawing) bool { return len(d.lines) == 0 })
}

// sized is a workload with the size that it stands for.
type sized struct {
	workload string
	size     float64
}

// byContender returns a line for us, for each rival and for the floor: a metric of
// several workloads.
func byContender(rows []compare.Row, metric string, workloads ...sized) []line {
	var all lines
	for _, w := range workloads {
		for _, row := range rows {
			if row.ID != w.workload || row.Metric.Name != metric {
				continue
			}
			all.add("watchmill", w.size, row.Ours)
			all.add("the floor", w.size, row.Floor)
			if row.Rival != "" {
				all.add(row.Rival, w.size, row.Theirs)
			}
		}
	}
	return all
}

// byGrowth returns a line for each workload that runs at several sizes.
func byGrowth(rows []compare.Row, metric string) []line {
	var all lines
	for size := 10; size <= 1_000_000; size *= 10 {
		for _, row := range rows {
			if name, known := growing[row.ID]; known && row.Metric.Name == bench.At(metric, size) {
				all.add(name, float64(size), row.Ours)
			}
		}
	}
	return all
}

// growing are the workloads that run at several sizes.
var growing = map[string]string{
	"W18/watchers": "watchers, of 10,000 objects",
	"W18/objects":  "objects, with 1,000 watchers",
}

type lines []line

// add adds a point, once, if it is known.
func (l *lines) add(name string, size float64, of compare.Spread) {
	if !of.Known() || of.Min <= 0 {
		return
	}
	at := slices.IndexFunc(*l, func(have line) bool { return have.name == name })
	if at < 0 {
		at = len(*l)
		*l = append(*l, line{name: name})
	}
	points := &(*l)[at].points
	if n := len(*points); n == 0 || (*points)[n-1].size != size {
		*points = append(*points, point{size, of})
	}
}

// Len, XY and YError are the points for the library.
func (l line) Len() int                { return len(l.points) }
func (l line) XY(i int) (x, y float64) { return l.points[i].size, l.points[i].of.Median }
func (l line) YError(i int) (less, more float64) {
	of := l.points[i].of
	return of.Min - of.Median, of.Max - of.Median
}

// write draws the axes and lines, and the legend beside them.
func (d drawing) write(dir string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = d.title, d.x, d.y
	p.Title.Padding = 4 * vg.Millimeter
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = powers{}, powers{}
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	p.Add(plotter.NewGrid())
	if err := d.addLines(p); err != nil {
		return err
	}
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(p.Y.Min))), math.Pow(10, math.Ceil(math.Log10(p.Y.Max)))

	legend := p.Legend
	p.Legend = plot.NewLegend()
	image := vgsvg.New(width+room, height)
	canvas := draw.New(image)
	left := width - margin - legend.Rectangle(canvas).Size().X
	p.Draw(draw.Crop(canvas, margin, left-margin-width-room, margin, -margin))
	legend.Draw(draw.Crop(canvas, left, -margin, margin, -legendTop))
	return save(image, filepath.Join(dir, d.file))
}

// addLines draws each line with its points, the range of each point, and a name in the legend.
func (d drawing) addLines(p *plot.Plot) error {
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Millimeter
	colors, err := brewer.GetPalette(brewer.TypeQualitative, "Dark2", 8)
	if err != nil {
		return err
	}
	for i, l := range d.lines {
		drawn, dots, err := plotter.NewLinePoints(l)
		if err != nil {
			return err
		}
		bars, err := plotter.NewYErrorBars(l)
		if err != nil {
			return err
		}
		color := colors.Colors()[i%8]
		drawn.Color, dots.Color, bars.Color = color, color, color
		dots.Shape = plotutil.Shape(i)
		p.Add(drawn, dots, bars)
		p.Legend.Add(l.name, drawn, dots)
	}
	return nil
}

// save writes the image, with other fonts for machines that lack the library's.
func save(image io.WriterTo, file string) error {
	var svg bytes.Buffer
	if _, err := image.WriteTo(&svg); err != nil {
		return err
	}
	named := []byte("font-family:Liberation Sans")
	return os.WriteFile(file, bytes.ReplaceAll(svg.Bytes(), named, append(named, ",Arial,Helvetica,sans-serif"...)), 0o644)
}

// powers marks the powers of ten with their short names.
type powers struct{}

// Ticks returns the marks between two values.
func (powers) Ticks(least, most float64) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(least)); e <= math.Ceil(math.Log10(most)); e++ {
		v := math.Pow(10, e)
		ticks = append(ticks, plot.Tick{Value: v, Label: bench.Quantity(v)})
	}
	return ticks
}
