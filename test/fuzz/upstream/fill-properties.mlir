linalg.fill<2>
