package demo

// employee is one entry of the directory.
type employee struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Title      string `json:"title"`
	Department string `json:"department"`
	Location   string `json:"location"`
	Email      string `json:"email"`
	Manager    string `json:"manager"` // empty for the head of the company
	Since      string `json:"since"`   // first day at work, YYYY-MM-DD
}

// employees returns the directory. All people are invented.
func employees() []employee {
	return []employee{
		{"E001", "Amara Lindqvist", "Chief Executive Officer", "Management", "Berlin", "amara.lindqvist@example.com", "", "2015-03-01"},
		{"E002", "Tomas Okafor", "VP Engineering", "Engineering", "Berlin", "tomas.okafor@example.com", "Amara Lindqvist", "2016-05-17"},
		{"E003", "Priya Raman", "Engineering Manager", "Engineering", "Lisbon", "priya.raman@example.com", "Tomas Okafor", "2018-09-03"},
		{"E004", "Jonas Feld", "Senior Software Engineer", "Engineering", "Berlin", "jonas.feld@example.com", "Priya Raman", "2019-02-11"},
		{"E005", "Mei Castellan", "Software Engineer", "Engineering", "Lisbon", "mei.castellan@example.com", "Priya Raman", "2022-06-20"},
		{"E006", "Dario Whitlock", "Site Reliability Engineer", "Engineering", "Toronto", "dario.whitlock@example.com", "Priya Raman", "2021-10-04"},
		{"E007", "Ana Beaumont", "Software Engineer", "Engineering", "Toronto", "ana.beaumont@example.com", "Priya Raman", "2024-01-15"},
		{"E008", "Kofi Brandt", "Machine Learning Engineer", "Engineering", "Berlin", "kofi.brandt@example.com", "Tomas Okafor", "2023-04-24"},
		{"E009", "Lena Moravec", "Security Engineer", "Engineering", "Lisbon", "lena.moravec@example.com", "Tomas Okafor", "2020-08-31"},
		{"E010", "Sofia Hallberg", "Head of Product", "Product", "Berlin", "sofia.hallberg@example.com", "Amara Lindqvist", "2017-11-06"},
		{"E011", "Ravi Delacroix", "Product Manager", "Product", "Toronto", "ravi.delacroix@example.com", "Sofia Hallberg", "2021-03-22"},
		{"E012", "Nora Iwata", "Product Designer", "Product", "Lisbon", "nora.iwata@example.com", "Sofia Hallberg", "2022-09-12"},
		{"E013", "Peter Sandoval", "User Researcher", "Product", "Berlin", "peter.sandoval@example.com", "Sofia Hallberg", "2023-02-01"},
		{"E014", "Grace Adeyemi", "Head of Sales", "Sales", "Toronto", "grace.adeyemi@example.com", "Amara Lindqvist", "2018-01-08"},
		{"E015", "Oskar Winther", "Account Executive", "Sales", "Berlin", "oskar.winther@example.com", "Grace Adeyemi", "2020-05-04"},
		{"E016", "Leila Marchetti", "Account Executive", "Sales", "Lisbon", "leila.marchetti@example.com", "Grace Adeyemi", "2024-07-01"},
		{"E017", "Hugo Tanaka", "Sales Engineer", "Sales", "Toronto", "hugo.tanaka@example.com", "Grace Adeyemi", "2022-02-14"},
		{"E018", "Ingrid Molnar", "Head of Marketing", "Marketing", "Berlin", "ingrid.molnar@example.com", "Amara Lindqvist", "2019-09-16"},
		{"E019", "Samuel Ortega", "Content Strategist", "Marketing", "Lisbon", "samuel.ortega@example.com", "Ingrid Molnar", "2023-11-20"},
		{"E020", "Freya Nakamura", "Chief Financial Officer", "Finance", "Berlin", "freya.nakamura@example.com", "Amara Lindqvist", "2016-10-10"},
		{"E021", "Victor Lemaire", "Accountant", "Finance", "Berlin", "victor.lemaire@example.com", "Freya Nakamura", "2020-12-01"},
		{"E022", "Zainab Kruger", "Payroll Specialist", "Finance", "Toronto", "zainab.kruger@example.com", "Freya Nakamura", "2021-07-19"},
		{"E023", "Clara Vestergaard", "Head of People", "People", "Berlin", "clara.vestergaard@example.com", "Amara Lindqvist", "2017-04-03"},
		{"E024", "Marcus Yilmaz", "Recruiter", "People", "Lisbon", "marcus.yilmaz@example.com", "Clara Vestergaard", "2022-11-28"},
		{"E025", "Elif Novak", "Support Lead", "Support", "Toronto", "elif.novak@example.com", "Grace Adeyemi", "2020-03-09"},
		{"E026", "Daniel Abara", "Support Engineer", "Support", "Lisbon", "daniel.abara@example.com", "Elif Novak", "2025-05-26"},
	}
}
