package compare

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/watchmill/watchmill/bench"
)

// Schema is the version of the JSON form of Report. It grows with every
// incompatible change.
const Schema = 1

// Report is the result of a plan.
type Report struct {
	Schema  int     `json:"schema"`
	Machine Machine `json:"machine"`
	// Small: the sizes were small, so the figures are meaningless.
	Small     bool       `json:"small,omitempty"`
	Workloads []Measured `json:"workloads"`
}

// Measured is the result of one workload.
type Measured struct {
	ID     string       `json:"id"`
	Text   string       `json:"text"`
	Params bench.Params `json:"params"`
	Rounds []Round      `json:"rounds"`

	goals []bench.Goal
}

// Round is one run of every contender and the floor.
type Round struct {
	Ours   bench.Result `json:"ours"`
	Rivals []Rival      `json:"rivals,omitempty"`
	Floor  bench.Result `json:"floor"`
	// Taken is the share of the processors that other programs, and other machines on
	// the same host, used during the round, from 0 to 1; zero if it is not known.
	Taken float64 `json:"taken,omitempty"`
}

// disturbance says how many rounds were disturbed; "" if none was.
func (m Measured) disturbance() string {
	n, most := 0, 0.0
	for _, r := range m.Rounds {
		if r.Taken > disturbed {
			n, most = n+1, max(most, r.Taken)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("Disturbed: in %d of %d rounds other programs used up to %.0f %% of the processors", n, len(m.Rounds), 100*most)
}

// Rival is one run of a rival.
type Rival struct {
	Name   string       `json:"name"`
	Result bench.Result `json:"result,omitempty"`
	// Failed is the error if there is no result.
	Failed string `json:"failed,omitempty"`
}

// rival returns the round's run of the rival of that name.
func (r Round) rival(name string) bench.Result {
	for _, rival := range r.Rivals {
		if rival.Name == name {
			return rival.Result
		}
	}
	return nil
}

// WriteJSON writes the report with every single figure.
func (r *Report) WriteJSON(to io.Writer) error {
	enc := json.NewEncoder(to)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Failures describes the failed runs of rivals.
func (r *Report) Failures() []string {
	var all []string
	for _, m := range r.Workloads {
		for i, round := range m.Rounds {
			for _, rival := range round.Rivals {
				if rival.Failed != "" {
					all = append(all, fmt.Sprintf("%s, %s, round %d: %s", m.ID, rival.Name, i+1, rival.Failed))
				}
			}
		}
	}
	return all
}
