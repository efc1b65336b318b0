package encode

import (
	"encoding/json"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/status"
	"github.com/watchmill/watchmill/usercode"
)

// Table turns objects of a kind into the rows of a table.
type Table struct {
	bytesOf func(State) ([]byte, error) // of an object
	info    *registry.Info
	include metav1.IncludeObjectPolicy
	as      accept.Form
}

// Table returns a table of a kind, whose rows have as much of the objects as include says: None, Metadata
// or Object, or "" for Metadata. Another value is refused by a Status.
func (c *Cache) Table(of *registry.Info, include string, as accept.Form) (*Table, error) {
	t := &Table{c.ForRead, of, metav1.IncludeObjectPolicy(include), as}
	switch t.include {
	case "":
		t.include = metav1.IncludeMetadata
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
	default:
		return nil, status.BadRequest("includeObject is %q: give None, Metadata or Object", t.include)
	}
	return t, nil
}

// EventTable is Table for the events of a watch, which shares the bytes of the objects with other watches.
func (c *Cache) EventTable(of *registry.Info, include string, as accept.Form) (*Table, error) {
	t, err := c.Table(of, include, as)
	if err != nil {
		return nil, err
	}
	t.bytesOf = c.ForEvent
	return t, nil
}

// columns returns the definitions of the columns: Name unless the kind wants none, the kind's own and, unless it has
// one or wants none, Age.
func (t *Table) columns() (all []metav1.TableColumnDefinition) {
	if !t.info.NoName {
		all = append(all, metav1.TableColumnDefinition{
			Name: "Name", Type: "string", Format: "name", Description: "Name of the object, unique in its namespace.",
		})
	}
	for _, c := range t.info.Columns {
		all = append(all, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: int32(c.Priority),
		})
	}
	if !t.addsAge() {
		return all
	}
	return append(all, metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "Time since the object was created."})
}

// addsAge reports whether tables have the column Age without the kind having one.
func (t *Table) addsAge() bool {
	return !t.info.NoAge && !slices.ContainsFunc(t.info.Columns, func(c registry.ColumnInfo) bool { return c.Name == "Age" })
}

// Row returns an object's row as JSON.
func (t *Table) Row(item registry.Item) ([]byte, error) {
	m := item.Meta()
	cells := []any{}
	if !t.info.NoName {
		cells = append(cells, m.GetName())
	}
	if err := usercode.Call("Column.Value", item.Key(), func() { cells = item.AppendCells(cells) }); err != nil {
		return nil, err
	}
	if t.addsAge() {
		cells = append(cells, age(m.GetCreationTimestamp()))
	}
	text, err := json.Marshal(cells)
	if err != nil {
		return nil, apierrors.NewInternalError(err) // like an error of encoding the object
	}
	object, err := t.object(item)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(`{"cells":`), text, []byte(`,"object":`), object, []byte(`}`)), nil
}

// EmptyRow returns the row of a bookmark, which has an object but no values.
func (t *Table) EmptyRow(object []byte) ([]byte, error) {
	row := metav1.TableRow{Cells: make([]any, len(t.columns()))}
	row.Object.Raw = object
	return json.Marshal(row)
}

// object returns as much of an object as its row is to have. It is not encoded again for the
// row, as it would be in a [metav1.TableRow].
func (t *Table) object(item registry.Item) ([]byte, error) {
	switch t.include {
	case metav1.IncludeObject:
		return t.bytesOf(State{item, accept.Form{Lean: t.as.Lean}})
	case metav1.IncludeMetadata:
		return t.bytesOf(State{item, accept.Form{Shape: accept.Partial, Lean: t.as.Lean}})
	}
	return []byte("null"), nil
}

func age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// Head returns the beginning of a table, up to its rows.
func (t *Table) Head(list metav1.ListMeta, withColumns bool) ([]byte, error) {
	table := struct {
		Kind       string                         `json:"kind"`
		APIVersion string                         `json:"apiVersion"`
		Metadata   metav1.ListMeta                `json:"metadata"`
		Columns    []metav1.TableColumnDefinition `json:"columnDefinitions"`
	}{"Table", metav1.GroupName + "/v1", list, nil}
	if t.as.Shape == accept.BetaTable {
		table.APIVersion = metav1.GroupName + "/v1beta1"
	}
	if withColumns {
		table.Columns = t.columns()
	}
	text, err := json.Marshal(table)
	if err != nil {
		return nil, err
	}
	return append(text[:len(text)-1], `,"rows":[`...), nil
}

// Single returns a table of one row.
func (t *Table) Single(version string, row []byte, withColumns bool) ([]byte, error) {
	text, err := t.Head(metav1.ListMeta{ResourceVersion: version}, withColumns)
	if err != nil {
		return nil, err
	}
	text = append(text, row...)
	return append(text, "]}"...), nil
}
